"""Every scenario with the official openai package, as its users write it."""

import os
import time
import urllib.request

import openai

STEADY, BROKEN, HOLD = os.environ["STEADY_URL"], os.environ["BROKEN_URL"], os.environ["HOLD_URL"]
IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

client = openai.OpenAI(base_url=STEADY, api_key="unused", default_headers={"X-Session-ID": "python"})


def ask(content, **more):
    more.setdefault("max_tokens", 8)
    return client.chat.completions.create(
        model="policy", messages=[{"role": "user", "content": content}], extra_body={"ignore_eos": True}, **more
    )


def models():
    assert [m.id for m in client.models.list()] == ["policy"]


def plain():
    reply = ask("plain")
    assert reply.choices[0].finish_reason == "length" and reply.usage.completion_tokens == 8


def streaming():
    events = list(ask("streaming", stream=True, stream_options={"include_usage": True}))
    assert events[-1].usage.completion_tokens == 8
    assert any(e.choices and e.choices[0].finish_reason == "length" for e in events)


def tools():
    look = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    assert ask("tools", tools=[look], tool_choice="auto").choices[0].message.role == "assistant"


def image():
    assert ask([{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": IMAGE}}]).choices


def samples():
    assert len(ask("samples", n=2).choices) == 2


def cancelled():
    stream = ask("cancelled", stream=True, max_tokens=30000)
    for _, _ in zip(range(3), stream):
        pass
    stream.close()


def rejected():
    try:
        client.chat.completions.create(model="policy", messages="none")
    except openai.BadRequestError as e:
        assert "messages" in str(e), e
    else:
        raise AssertionError("accepted")


def held():
    urllib.request.urlopen(urllib.request.Request(HOLD, method="POST")).read()
    began = time.monotonic()
    assert ask("held").choices
    assert time.monotonic() - began > 1


def broken():
    # The engine generates and then resets the connection. The client would repeat that twice.
    try:
        client.with_options(base_url=BROKEN, max_retries=2).chat.completions.create(
            model="policy", messages=[{"role": "user", "content": "broken"}], max_tokens=8
        )
    except openai.InternalServerError as e:
        assert e.status_code == 502 and e.code == "ExchangeBroken", e
    else:
        raise AssertionError("a cut reply was taken for a whole one")


for scenario in (models, plain, streaming, tools, image, samples, cancelled, rejected, held, broken):
    scenario()
    print("ok", scenario.__name__)
print("openai for Python", openai.__version__)
