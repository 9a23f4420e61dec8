"""The `openai` client for Python."""

import asyncio
import json
import typing

import openai
import pydantic
from harness import account, check, equal, raises
from openai.types import completion_create_params, embedding_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import response_create_params

HELLO = "Hello wörld 😀!"
MARKERS = {"reasoning_markers": ["<think>", "</think>"]}

WEATHER = {
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"enum": ["Ulm", "Bonn"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
TOOLS = [{"type": "function", "function": WEATHER}]
FLAT_TOOLS = [{"type": "function", **WEATHER}]
BONN = '{"city":"Bonn"}'


class Ticket(pydantic.BaseModel):
    """A verdict with a form of its own."""

    verdict: typing.Literal["yes", "no"]
    urgent: bool


def client(url, **options):
    options = {"max_retries": 0, "timeout": 30, **options}
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", **options)


def said(text):
    return [{"role": "user", "content": text}]


def chat(url, text, **fields):
    fields = {"model": "scripted", "messages": said(text), **fields}
    return client(url).chat.completions.create(**fields)


@check
def a_chat_is_answered(servers):
    answer = chat(servers.scripted, "hello")
    equal(answer.choices[0].message.content, HELLO)
    equal(answer.choices[0].message.role, "assistant")
    equal(answer.choices[0].finish_reason, "stop")
    equal(answer.usage.completion_tokens, 9)
    equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 9)
    equal(answer.usage.completion_tokens_details.reasoning_tokens, 0)
    extension = answer.model_extra["causeway"]["choices"][0]
    equal(extension["tokens"]["visible"], 8)
    equal(extension["passes"]["decode"], 8)


@check
def a_chat_streams(servers):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(chat(servers.scripted, "hello", **options))
    equal(chunks[0].choices[0].delta.role, "assistant")
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    equal(text, HELLO)
    ends = [c.choices[0].finish_reason for c in chunks if c.choices]
    equal([end for end in ends if end], ["stop"])
    equal(chunks[-1].choices, [])
    equal(chunks[-1].usage.completion_tokens, 9)
    equal([c.usage for c in chunks[:-1]], [None] * (len(chunks) - 1))
    equal(len({c.id for c in chunks}), 1)


@check
def the_stream_helper_reads_a_chat(servers):
    fields = {"model": "scripted", "messages": said("hello")}
    with client(servers.scripted).chat.completions.stream(**fields) as stream:
        final = stream.get_final_completion()
    equal(final.choices[0].message.content, HELLO)


@check
def choices_are_parallel(servers):
    answer = chat(servers.scripted, "hello", n=3)
    equal([choice.index for choice in answer.choices], [0, 1, 2])
    equal({choice.message.content for choice in answer.choices}, {HELLO})
    equal(answer.usage.completion_tokens, 27)
    texts = ["", "", ""]
    for chunk in chat(servers.scripted, "hello", n=3, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    equal(texts, [HELLO] * 3)


@check
def stops_and_budgets_end_answers(servers):
    for fields, text, reason in [
        ({"stop": ["two"]}, "one, ", "stop"),
        ({"stop": ", two"}, "one", "stop"),
        ({"max_tokens": 3}, "one, two", "length"),
        ({"max_completion_tokens": 1}, "one", "length"),
    ]:
        answer = chat(servers.scripted, "count", **fields)
        equal((answer.choices[0].message.content, answer.choices[0].finish_reason), (text, reason))
        stream = list(chat(servers.scripted, "count", stream=True, **fields))
        equal("".join(c.choices[0].delta.content or "" for c in stream), text)


@check
def logprobs_are_the_models(servers):
    answer = chat(servers.scripted, "count", logprobs=True, top_logprobs=2, temperature=0)
    tokens = answer.choices[0].logprobs.content
    equal([token.token for token in tokens], ["one", ", ", "two", ", ", "three"])
    for token in tokens:
        equal(len(token.top_logprobs), 2)
        equal(token.top_logprobs[0].logprob, token.logprob)
        equal(bytes(token.bytes).decode(), token.token)
        equal(token.model_extra["policy_probability"], 1.0)


@check
def reasoning_is_apart(servers):
    answer = chat(servers.scripted, "think", extra_body=MARKERS)
    equal(answer.choices[0].message.content, "Yes.")
    equal(answer.choices[0].message.model_extra["reasoning_content"], "so it")
    equal(answer.usage.completion_tokens_details.reasoning_tokens, 4)
    none = chat(servers.scripted, "think", extra_body=MARKERS, reasoning_effort="none")
    equal("reasoning_content" in (none.choices[0].message.model_extra or {}), False)
    some = chat(servers.scripted, "think", extra_body={**MARKERS, "reasoning_tokens_max": 1})
    equal(some.choices[0].message.model_extra["reasoning_content"], "so")


@check
def completions_are_answered(servers):
    fields = {"model": "scripted", "prompt": "count", "max_tokens": 16}
    create = client(servers.scripted).completions.create
    whole = create(**fields, echo=True, logprobs=1)
    equal(whole.choices[0].text, "countone, two, three")
    equal(whole.choices[0].logprobs.tokens, ["one", ", ", "two", ", ", "three"])
    equal(whole.choices[0].logprobs.text_offset, [5, 8, 10, 13, 15])
    chunks = list(create(**fields, stream=True, stream_options={"include_usage": True}))
    equal("".join(c.choices[0].text for c in chunks if c.choices), "one, two, three")
    equal(chunks[-1].usage.completion_tokens, 6)


@check
def responses_are_answered(servers):
    create = client(servers.scripted).responses.create
    answer = create(model="scripted", input="hello", instructions="be kind")
    equal((answer.status, answer.output_text), ("completed", HELLO))
    equal(answer.usage.output_tokens, 9)
    equal(answer.usage.input_tokens_details.cached_tokens >= 0, True)
    answer = create(model="scripted", input=said("count"), max_output_tokens=3)
    equal((answer.status, answer.output_text), ("incomplete", "one, two"))
    equal(answer.incomplete_details.reason, "max_output_tokens")
    answer = create(model="scripted", input="think", extra_body=MARKERS)
    equal([item.type for item in answer.output], ["reasoning", "message"])
    equal(answer.output[0].content[0].text, "so it")
    include = ["message.output_text.logprobs"]
    answer = create(model="scripted", input="count", include=include, top_logprobs=2)
    equal(len(answer.output[0].content[0].logprobs), 5)
    # What came out may go in again.
    again = [*said("count"), *[item.to_dict() for item in answer.output], *said("hello")]
    equal(create(model="scripted", input=again).output_text, HELLO)


@check
def responses_stream(servers):
    fields = {"model": "scripted", "input": "think", "extra_body": MARKERS}
    events = list(client(servers.scripted).responses.create(**fields, stream=True))
    equal([event.sequence_number for event in events], list(range(len(events))))
    equal(events[0].type, "response.created")
    equal(events[-1].type, "response.completed")
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    equal("".join(delta.delta for delta in deltas), "Yes.")
    equal(events[-1].response.output_text, "Yes.")
    with client(servers.scripted).responses.stream(model="scripted", input="hello") as stream:
        equal(stream.get_final_response().output_text, HELLO)
    fields = {"model": "scripted", "input": "count", "max_output_tokens": 2, "stream": True}
    events = list(client(servers.scripted).responses.create(**fields))
    equal(events[-1].type, "response.incomplete")
    events = list(client(servers.scripted).responses.create(
        model="scripted", input="broken", stream=True))
    equal((events[-1].type, events[-1].response.status), ("response.failed", "failed"))


@check
def mistakes_are_typed(servers):
    for fields, param in [
        ({"temperature": 3}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"n": 99}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"extra_body": {"nonsense": 1}}, "nonsense"),
    ]:
        error = raises(openai.BadRequestError, lambda: chat(servers.scripted, "x", **fields))
        equal(error.param, param)
        equal(param in error.message, True)
        equal(error.type, "invalid_request_error")
    raises(openai.NotFoundError, lambda: chat(servers.scripted, "x", model="nobody"))
    create = client(servers.scripted).embeddings.create
    error = raises(openai.InternalServerError, lambda: create(model="scripted", input="x"))
    equal(error.status_code, 501)
    error = raises(openai.InternalServerError, lambda: chat(servers.scripted, "broken"))
    equal(error.status_code, 500)
    raises(openai.APIError, lambda: list(chat(servers.scripted, "broken", stream=True)))
    long = "w" * 3000
    error = raises(openai.BadRequestError, lambda: chat(servers.scripted, long))
    equal(error.code, "context_length_exceeded")


@check
def every_documented_field_is_known(servers):
    for path, params, least in [
        ("/chat/completions", chat_create_params.CompletionCreateParamsNonStreaming,
         {"messages": said("x")}),
        ("/completions", completion_create_params.CompletionCreateParamsNonStreaming,
         {"prompt": "x"}),
        ("/responses", response_create_params.ResponseCreateParamsNonStreaming, {"input": "x"}),
        ("/embeddings", embedding_create_params.EmbeddingCreateParams, {"input": "x"}),
    ]:
        for field in typing.get_type_hints(params):
            body = {**least, field: {"probe": [1]}}
            try:
                client(servers.scripted).post(path, cast_to=object, body=body)
            except openai.BadRequestError as error:
                equal((error.param or "").startswith(field), True)
                equal(error.code == "unknown_parameter", False)
            except openai.InternalServerError as error:
                equal((path, error.status_code), ("/embeddings", 501))


@check
def a_closed_stream_ends_its_run(servers):
    stream = chat(servers.scripted, "endless", stream=True)
    request = next(iter(stream)).id
    stream.close()
    choice = account(servers.scripted, request)["choices"][0]
    equal((choice["stop"]["reason"], choice["cancelled_by"]), ("cancelled", "disconnect"))
    stream = client(servers.scripted).responses.create(
        model="scripted", input="endless", stream=True)
    request = next(iter(stream)).response.id
    stream.close()
    equal(account(servers.scripted, request)["choices"][0]["cancelled_by"], "disconnect")


@check
def a_timeout_ends_its_run(servers):
    impatient = client(servers.scripted, timeout=0.3)
    create = impatient.chat.completions.create
    fields = {"model": "scripted", "messages": said("slow")}
    raises(openai.APITimeoutError, lambda: create(**fields))
    fields = {"model": "scripted", "messages": said("endless"), "extra_body": {"timeout_ms": 150}}
    answer = client(servers.scripted).chat.completions.create(**fields)
    equal(answer.choices[0].finish_reason, "deadline")
    equal(chat(servers.scripted, "hello").choices[0].message.content, HELLO)


@check
def models_are_listed(servers):
    for url, name in [(servers.scripted, "scripted"), (servers.model, "smollm2:135m")]:
        equal([model.id for model in client(url).models.list()], [name])
        equal(client(url).models.retrieve(name).id, name)
    raises(openai.NotFoundError, lambda: client(servers.scripted).models.retrieve("nobody"))


@check
def requests_have_ids(servers):
    raw = client(servers.scripted).chat.completions.with_raw_response
    reply = raw.create(model="scripted", messages=said("x"), extra_headers={"X-Request-Id": "mine"})
    equal(reply.headers["x-request-id"], "mine")


@check
def many_at_once_say_what_one_says(servers):
    async def ask(number):
        options = {"base_url": f"{servers.model}/v1", "api_key": "none", "max_retries": 0}
        async with openai.AsyncOpenAI(**options) as asking:
            answer = await asking.chat.completions.create(
                model="smollm2:135m",
                messages=said(f"Count to {number}."),
                max_tokens=6,
                seed=number,
            )
            return answer.choices[0].message.content

    async def together():
        return await asyncio.gather(*[ask(number) for number in range(4)])

    equal(asyncio.run(together()), [asyncio.run(ask(number)) for number in range(4)])


@check
def a_real_model_says_the_same_in_every_form(servers):
    text = "Why is the sky blue?"
    same = {"seed": 7, "top_k": 40}
    ask = {"model": "smollm2:135m", "temperature": 0.8}
    chats = {**ask, "messages": said(text), "max_tokens": 10, "extra_body": same}
    create = client(servers.model).chat.completions.create
    whole = create(**chats, n=2)
    contents = [choice.message.content for choice in whole.choices]
    equal(all(contents), True)
    streamed = "".join(c.choices[0].delta.content or "" for c in create(**chats, stream=True))
    equal(streamed, contents[0])
    responses = {**ask, "input": text, "max_output_tokens": 10, "extra_body": same}
    create = client(servers.model).responses.create
    equal(create(**responses).output_text, contents[0])
    events = list(create(**responses, stream=True))
    equal(events[-1].response.output_text, contents[0])
    create = client(servers.model).completions.create
    fields = {**ask, "prompt": "The sky is", "max_tokens": 6, "extra_body": same, "logprobs": 2}
    whole = create(**fields).choices[0]
    equal("".join(c.choices[0].text for c in create(**fields, stream=True)), whole.text)
    equal(all(logprob <= 0 for logprob in whole.logprobs.token_logprobs), True)


@check
def a_chat_has_a_form(servers):
    completions = client(servers.model).chat.completions
    asked = {"model": "smollm2:135m", "messages": said("Is this urgent?"), "temperature": 0}
    parsed = completions.parse(**asked, response_format=Ticket).choices[0]
    equal((type(parsed.message.parsed), parsed.finish_reason), (Ticket, "stop"))
    schema = {"name": "ticket", "schema": Ticket.model_json_schema(), "strict": True}
    asked["response_format"] = {"type": "json_schema", "json_schema": schema}
    whole = completions.create(**asked)
    equal(whole.choices[0].message.content, parsed.message.content)
    fields = whole.model_extra["causeway"]["choices"][0]["fields"]
    equal([field["path"] for field in fields], ["", "/verdict", "/urgent"])
    chunks = completions.create(**asked, stream=True)
    equal("".join(c.choices[0].delta.content or "" for c in chunks), parsed.message.content)


@check
def a_response_has_a_form(servers):
    responses = client(servers.model).responses
    asked = {"model": "smollm2:135m", "input": "Is this urgent?", "temperature": 0}
    parsed = responses.parse(**asked, text_format=Ticket)
    equal((type(parsed.output_parsed), parsed.status), (Ticket, "completed"))
    form = {"type": "json_schema", "name": "ticket", "schema": Ticket.model_json_schema()}
    events = list(responses.create(**asked, text={"format": form}, stream=True))
    equal(events[-1].response.output_text, parsed.output_text)
    Ticket.model_validate_json(parsed.output_text)


@check
def a_chat_calls(servers):
    answer = chat(servers.scripted, "weather?", tools=TOOLS)
    choice = answer.choices[0]
    equal((choice.finish_reason, choice.message.content), ("tool_calls", "I look."))
    call = choice.message.tool_calls[0]
    equal((call.type, call.function.name, call.function.arguments), ("function", "weather", BONN))
    result = {"role": "tool", "tool_call_id": call.id, "content": "it rains"}
    turns = [*said("weather?"), choice.message, result]
    create = client(servers.scripted).chat.completions.create
    answer = create(model="scripted", messages=turns, tools=TOOLS)
    equal(answer.choices[0].message.content, "Take a coat.")
    named = {"type": "function", "function": {"name": "weather"}}
    answer = chat(servers.scripted, "hello", tools=TOOLS, tool_choice=named)
    equal(answer.choices[0].message.content, None)
    equal(list(json.loads(answer.choices[0].message.tool_calls[0].function.arguments)), ["city"])


@check
def a_streamed_chat_calls(servers):
    asked = {"model": "scripted", "messages": said("weather?"), "tools": TOOLS}
    with client(servers.scripted).chat.completions.stream(**asked) as stream:
        choice = stream.get_final_completion().choices[0]
    equal((choice.finish_reason, choice.message.content), ("tool_calls", "I look."))
    function = choice.message.tool_calls[0].function
    equal((function.name, function.arguments), ("weather", BONN))
    equal(function.parsed_arguments, {"city": "Bonn"})


@check
def a_response_calls(servers):
    asked = {"model": "scripted", "input": said("weather?"), "tools": FLAT_TOOLS}
    create = client(servers.scripted).responses.create
    answer = create(**asked)
    equal([item.type for item in answer.output], ["message", "function_call"])
    call = answer.output[1]
    equal((call.name, call.arguments, call.status), ("weather", BONN, "completed"))
    equal((answer.output_text, answer.tools[0].name), ("I look.", "weather"))
    # What came out may go in again, with what the tool said.
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "it rains"}
    turns = [*said("weather?"), *[item.to_dict() for item in answer.output], result]
    equal(create(**{**asked, "input": turns}).output_text, "Take a coat.")
    answer = create(model="scripted", input="hello", tools=FLAT_TOOLS, tool_choice="required")
    equal({item.type for item in answer.output}, {"function_call"})


@check
def a_streamed_response_calls(servers):
    asked = {"model": "scripted", "input": "weather?", "tools": FLAT_TOOLS}
    events = list(client(servers.scripted).responses.create(**asked, stream=True))
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    equal([(event.name, event.arguments) for event in done], [("weather", BONN)])
    with client(servers.scripted).responses.stream(**asked) as stream:
        last = stream.get_final_response()
    equal((last.output[1].name, last.output[1].parsed_arguments), ("weather", {"city": "Bonn"}))


@check
def other_tools_are_refused(servers):
    create = client(servers.scripted).responses.create
    for tools, choice, param in [
        ([{"type": "web_search"}], "auto", "tools[0]"),
        (FLAT_TOOLS, {"type": "function", "name": "other"}, "tool_choice"),
        (FLAT_TOOLS, {"type": "file_search"}, "tool_choice"),
    ]:
        asked = {"model": "scripted", "input": "x", "tools": tools, "tool_choice": choice}
        equal(raises(openai.BadRequestError, lambda: create(**asked)).param, param)
