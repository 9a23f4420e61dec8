"""The `anthropic` client for Python."""

import typing

import anthropic
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_create_params as beta_create_params
from harness import account, check, equal, raises

HELLO = "Hello wörld 😀!"
MARKERS = {"reasoning_markers": ["<think>", "</think>"]}

TOOLS = [{
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"enum": ["Ulm", "Bonn"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}]


def client(url, **options):
    options = {"max_retries": 0, "timeout": 30, **options}
    return anthropic.Anthropic(base_url=url, api_key="none", **options)


def said(text):
    return [{"role": "user", "content": text}]


def fields(text, **more):
    return {"model": "scripted", "max_tokens": 64, "messages": said(text), **more}


@check
def a_message_is_answered(servers):
    create = client(servers.scripted).messages.create
    answer = create(**fields("hello", system="be kind"))
    equal((answer.type, answer.role, answer.stop_reason), ("message", "assistant", "end_turn"))
    equal([(block.type, block.text) for block in answer.content], [("text", HELLO)])
    equal(answer.usage.output_tokens, 9)
    equal(answer.model_extra["causeway"]["choices"][0]["tokens"]["visible"], 8)
    again = create(**fields("hello", system="be kind"))
    total = again.usage.input_tokens + again.usage.cache_read_input_tokens
    equal(total, answer.usage.input_tokens + answer.usage.cache_read_input_tokens)
    counted = client(servers.scripted).messages.count_tokens(
        model="scripted", messages=said("hello"), system="be kind")
    equal(counted.input_tokens, total)


@check
def models_are_listed(servers):
    models = client(servers.scripted).models
    page = models.list()
    equal([model.id for model in page], ["scripted"])
    equal((page.has_more, page.first_id, page.last_id), (False, "scripted", "scripted"))
    model = models.retrieve("scripted")
    equal((model.id, model.type, model.display_name), ("scripted", "model", "scripted"))
    equal(model.created_at.year >= 2024, True)
    equal([model.id for model in models.list(limit=1)], ["scripted"])
    equal([model.id for model in client(servers.model).models.list()], ["smollm2:135m"])
    equal(client(servers.model).models.retrieve("smollm2:135m").id, "smollm2:135m")
    raises(anthropic.NotFoundError, lambda: models.retrieve("nobody"))


@check
def a_thought_has_a_budget(servers):
    create = client(servers.scripted).messages.create
    asked = fields("think", extra_body=MARKERS)
    budget = {"type": "enabled", "budget_tokens": 1}
    answer = create(**asked, thinking=budget)
    equal((answer.content[0].type, answer.content[0].thinking), ("thinking", "so"))
    tokens = answer.model_extra["causeway"]["choices"][0]["tokens"]
    equal(tokens["forced"] > 0, True)
    off = create(**asked, thinking={"type": "disabled"})
    equal([block.type for block in off.content], ["text"])


@check
def stop_reasons_are_mapped(servers):
    create = client(servers.scripted).messages.create
    answer = create(**fields("count", stop_sequences=["two"]))
    equal((answer.stop_reason, answer.stop_sequence), ("stop_sequence", "two"))
    equal(answer.content[0].text, "one, ")
    answer = create(**{**fields("count"), "max_tokens": 3})
    equal((answer.stop_reason, answer.content[0].text), ("max_tokens", "one, two"))


@check
def messages_stream(servers):
    events = list(client(servers.scripted).messages.create(**fields("hello"), stream=True))
    equal(events[0].type, "message_start")
    equal(events[1].type, "content_block_start")
    equal([event.type for event in events[-3:]],
          ["content_block_stop", "message_delta", "message_stop"])
    deltas = [event.delta.text for event in events if event.type == "content_block_delta"]
    equal("".join(deltas), HELLO)
    equal(events[-2].usage.output_tokens, 9)
    with client(servers.scripted).messages.stream(**fields("hello")) as stream:
        equal("".join(stream.text_stream), HELLO)
        final = stream.get_final_message()
    equal((final.stop_reason, final.usage.output_tokens), ("end_turn", 9))
    thinking = fields("think", extra_body=MARKERS)
    with client(servers.scripted).messages.stream(**thinking) as stream:
        final = stream.get_final_message()
    equal([block.type for block in final.content], ["thinking", "text"])
    equal((final.content[0].thinking, final.content[1].text), ("so it", "Yes."))
    whole = client(servers.scripted).messages.create(**thinking)
    equal(whole.content[0].thinking, "so it")
    # What came out may go in again.
    again = [*said("think"), {"role": "assistant", "content": whole.content},
             *said("hello")]
    answer = client(servers.scripted).messages.create(**{**thinking, "messages": again})
    equal(answer.content[-1].text[:5], "Hello")


@check
def mistakes_are_typed(servers):
    create = client(servers.scripted).messages.create
    for more, field in [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"extra_body": {"temperature": 1.5}}, "temperature"),
        ({"extra_body": {"nonsense": 1}}, "nonsense"),
        ({"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}, "tools"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 16}}, "thinking"),
    ]:
        error = raises(anthropic.BadRequestError, lambda: create(**{**fields("x"), **more}))
        equal(error.body["error"]["type"], "invalid_request_error")
        equal(f"`{field}`" in error.body["error"]["message"], True)
    raises(anthropic.NotFoundError, lambda: create(**fields("x", model="nobody")))
    error = raises(anthropic.InternalServerError, lambda: create(**fields("broken")))
    equal(error.body["error"]["type"], "api_error")
    raises(anthropic.APIStatusError, lambda: list(create(**fields("broken"), stream=True)))


@check
def every_documented_field_is_known(servers):
    for path, params in [
        ("/v1/messages", message_create_params.MessageCreateParamsNonStreaming),
        ("/v1/messages", beta_create_params.MessageCreateParamsNonStreaming),
        ("/v1/messages/count_tokens", message_count_tokens_params.MessageCountTokensParams),
    ]:
        least = fields("x")
        if path.endswith("count_tokens"):
            del least["max_tokens"]
        for field in typing.get_type_hints(params):
            # Betas are named in a header.
            if field == "betas":
                continue
            body = {**least, field: {"probe": [1]}}
            try:
                client(servers.scripted).post(path, cast_to=object, body=body)
            except anthropic.BadRequestError as error:
                equal(error.body["error"]["param"].startswith(field), True)
                equal(error.body["error"]["code"] == "unknown_parameter", False)


@check
def a_closed_stream_ends_its_run(servers):
    stream = client(servers.scripted).messages.create(
        **{**fields("endless"), "max_tokens": 1500}, stream=True)
    request = next(iter(stream)).message.id
    stream.close()
    choice = account(servers.scripted, request)["choices"][0]
    equal((choice["stop"]["reason"], choice["cancelled_by"]), ("cancelled", "disconnect"))


@check
def a_timeout_ends_its_run(servers):
    impatient = client(servers.scripted, timeout=0.3)
    raises(anthropic.APITimeoutError, lambda: impatient.messages.create(**fields("slow")))
    answer = client(servers.scripted).messages.create(**fields("hello"))
    equal(answer.content[0].text, HELLO)


@check
def a_real_model_goes_on_from_a_last_turn(servers):
    asked = {
        "model": "smollm2:135m",
        "max_tokens": 8,
        "messages": [*said("Name a colour."), {"role": "assistant", "content": "Blue is"}],
        "extra_body": {"temperature": 0},
    }
    whole = client(servers.model).messages.create(**asked)
    equal(bool(whole.content[0].text), True)
    with client(servers.model).messages.stream(**asked) as stream:
        equal("".join(stream.text_stream), whole.content[0].text)


@check
def a_message_calls(servers):
    messages = client(servers.scripted).messages
    answer = messages.create(**fields("weather?", max_tokens=256, tools=TOOLS))
    equal((answer.stop_reason, answer.content[0].text), ("tool_use", "I look."))
    call = answer.content[1]
    equal((call.type, call.name, call.input), ("tool_use", "weather", {"city": "Bonn"}))
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "it rains"}
    turns = [*said("weather?"), {"role": "assistant", "content": answer.content},
             {"role": "user", "content": [result]}]
    again = messages.create(**{**fields("", max_tokens=256, tools=TOOLS), "messages": turns})
    equal((again.stop_reason, again.content[0].text), ("end_turn", "Take a coat."))
    choice = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
    answer = messages.create(**fields("hello", max_tokens=256, tools=TOOLS, tool_choice=choice))
    equal([block.type for block in answer.content], ["tool_use"])
    counted = messages.count_tokens(
        model="scripted", messages=said("hello"), tools=TOOLS, tool_choice=choice)
    equal(counted.input_tokens,
          answer.usage.input_tokens + answer.usage.cache_read_input_tokens)


@check
def a_streamed_message_calls(servers):
    asked = fields("weather?", max_tokens=256, tools=TOOLS)
    with client(servers.scripted).messages.stream(**asked) as stream:
        final = stream.get_final_message()
    equal((final.stop_reason, final.content[0].text), ("tool_use", "I look."))
    equal((final.content[1].name, final.content[1].input), ("weather", {"city": "Bonn"}))
    events = client(servers.scripted).messages.create(**asked, stream=True)
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    parts = [delta.partial_json for delta in deltas if delta.type == "input_json_delta"]
    equal("".join(parts), '{"city":"Bonn"}')
