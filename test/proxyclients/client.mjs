// Every scenario with the official openai package, as its users write it.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { VERSION } from "openai/version";

const { STEADY_URL, BROKEN_URL, HOLD_URL } = process.env;
const image =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" +
  "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const client = new OpenAI({ baseURL: STEADY_URL, apiKey: "unused", defaultHeaders: { "X-Session-ID": "node" } });

const ask = (content, more = {}) =>
  client.chat.completions.create({
    model: "policy", max_tokens: 8, ignore_eos: true, messages: [{ role: "user", content }], ...more,
  });

const scenarios = {
  async models() {
    assert.deepEqual((await client.models.list()).data.map((m) => m.id), ["policy"]);
  },
  async plain() {
    const reply = await ask("plain");
    assert.equal(reply.choices[0].finish_reason, "length");
    assert.equal(reply.usage.completion_tokens, 8);
  },
  async streaming() {
    const events = [];
    for await (const e of await ask("streaming", { stream: true, stream_options: { include_usage: true } })) events.push(e);
    assert.equal(events.at(-1).usage.completion_tokens, 8);
    assert.ok(events.some((e) => e.choices[0]?.finish_reason === "length"));
  },
  async tools() {
    const look = { type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } };
    assert.equal((await ask("tools", { tools: [look] })).choices[0].message.role, "assistant");
  },
  async image() {
    assert.ok((await ask([{ type: "image_url", image_url: { url: image } }])).choices.length);
  },
  async samples() {
    assert.equal((await ask("samples", { n: 2 })).choices.length, 2);
  },
  async cancelled() {
    let seen = 0;
    for await (const _ of await ask("cancelled", { stream: true, max_tokens: 30000 })) if (++seen === 3) break;
    assert.equal(seen, 3);
  },
  async rejected() {
    const refused = client.chat.completions.create({ model: "policy", messages: "none" });
    await assert.rejects(refused, OpenAI.BadRequestError);
  },
  async held() {
    await fetch(HOLD_URL, { method: "POST" });
    const began = performance.now();
    assert.ok((await ask("held")).choices.length);
    assert.ok(performance.now() - began > 1000);
  },
  async broken() {
    // The engine generates and then resets the connection. The client would repeat that twice.
    const other = client.withOptions({ baseURL: BROKEN_URL, maxRetries: 2 });
    const cut = other.chat.completions.create({ model: "policy", max_tokens: 8, messages: [{ role: "user", content: "broken" }] });
    await assert.rejects(cut, (e) => e.status === 502 && e.code === "ExchangeBroken");
  },
};

for (const [name, run] of Object.entries(scenarios)) {
  await run();
  console.log("ok", name);
}
console.log("openai for Node", VERSION);
