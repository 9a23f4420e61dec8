"""What the checks of all clients share."""

import dataclasses
import json
import time
import urllib.request

CHECKS = []


@dataclasses.dataclass
class Servers:
    """Addresses: a script whose answers are fixed, and a real model."""

    scripted: str
    model: str


def check(function):
    """Adds a check; it takes the servers and raises where they do wrong."""
    CHECKS.append(function)
    return function


def equal(found, wanted):
    """Fails with both values."""
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


def raises(kind, call):
    """The exception of a call, which must be of this kind."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"nothing was raised, wanted {kind.__name__}")


def account(url, request):
    """The account of a request once it has ended."""
    for _ in range(200):
        with urllib.request.urlopen(f"{url}/v1/requests/{request}") as reply:
            told = json.load(reply)
        if told["state"] == "ended":
            return told
        time.sleep(0.02)
    raise AssertionError(f"{request} has not ended: {told}")
