// The `openai` client for JavaScript; the last line is a count as JSON.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const OpenAI = createRequire(`${process.env.CLIENTS_NODE}/`)('openai')
const HELLO = 'Hello wörld 😀!'
const schema = {
  type: 'object',
  properties: { city: { enum: ['Ulm', 'Bonn'] } },
  required: ['city'],
  additionalProperties: false,
}
const tools = [{ type: 'function', function: { name: 'weather', parameters: schema, strict: true } }]

const client = (url, options = {}) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, ...options })
const scripted = client(process.env.SCRIPTED)
const model = client(process.env.MODEL)
const said = (content) => [{ role: 'user', content }]
const chat = (content, fields = {}, options = {}) =>
  scripted.chat.completions.create({ model: 'scripted', messages: said(content), ...fields }, options)

const collected = async (stream) => {
  const all = []
  for await (const one of stream) all.push(one)
  return all
}

const ended = async (request) => {
  for (let look = 0; look < 200; look += 1) {
    const told = await (await fetch(`${process.env.SCRIPTED}/v1/requests/${request}`)).json()
    if (told.state === 'ended') return told.choices[0]
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`${request} has not ended`)
}

const checks = {
  async 'a chat is answered'() {
    const answer = await chat('hello', { n: 2 })
    assert.deepEqual(answer.choices.map((choice) => choice.message.content), [HELLO, HELLO])
    assert.equal(answer.usage.completion_tokens, 18)
    assert.equal(answer.causeway.choices.length, 2)
  },
  async 'a chat streams'() {
    const fields = { stream: true, stream_options: { include_usage: true } }
    const chunks = await collected(await chat('hello', fields))
    assert.equal(chunks.map((one) => one.choices[0]?.delta.content ?? '').join(''), HELLO)
    assert.equal(chunks.at(-1).usage.completion_tokens, 9)
  },
  async 'the stream helper reads a chat'() {
    const fields = { model: 'scripted', messages: said('hello') }
    const stream = scripted.chat.completions.stream(fields)
    assert.equal(await stream.finalContent(), HELLO)
  },
  async 'stops and logprobs'() {
    const answer = await chat('count', { stop: ['three'], logprobs: true, top_logprobs: 1 })
    assert.equal(answer.choices[0].message.content, 'one, two, ')
    assert.equal(answer.choices[0].logprobs.content.length, 4)
  },
  async 'completions are answered'() {
    const fields = { model: 'scripted', prompt: 'count', max_tokens: 3 }
    const whole = await scripted.completions.create(fields)
    assert.equal(whole.choices[0].text, 'one, two')
    assert.equal(whole.choices[0].finish_reason, 'length')
    const chunks = await collected(await scripted.completions.create({ ...fields, stream: true }))
    assert.equal(chunks.map((one) => one.choices[0].text).join(''), 'one, two')
  },
  async 'responses are answered'() {
    const fields = { model: 'scripted', input: 'hello' }
    const whole = await scripted.responses.create(fields)
    assert.equal(whole.output_text, HELLO)
    const events = await collected(await scripted.responses.create({ ...fields, stream: true }))
    assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()])
    assert.equal(events.at(-1).type, 'response.completed')
    const helper = scripted.responses.stream(fields)
    assert.equal((await helper.finalResponse()).output_text, HELLO)
  },
  async 'mistakes are typed'() {
    await assert.rejects(chat('x', { temperature: 3 }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError)
      assert.equal(error.param, 'temperature')
      return true
    })
    await assert.rejects(chat('x', { model: 'nobody' }), OpenAI.NotFoundError)
    await assert.rejects(chat('broken'), OpenAI.InternalServerError)
    await assert.rejects(
      chat('broken', { stream: true }).then(collected),
      OpenAI.APIError
    )
    await assert.rejects(
      scripted.embeddings.create({ model: 'scripted', input: 'x' }),
      (error) => error.status === 501
    )
  },
  async 'an aborted stream ends its run'() {
    const stream = await chat('endless', { stream: true })
    let request
    for await (const chunk of stream) {
      request = chunk.id
      break
    }
    stream.controller.abort()
    assert.equal((await ended(request)).cancelled_by, 'disconnect')
  },
  async 'a timeout ends its run'() {
    await assert.rejects(chat('slow', {}, { timeout: 300 }), OpenAI.APIConnectionTimeoutError)
    assert.equal((await chat('hello')).choices[0].message.content, HELLO)
  },
  async 'models are listed'() {
    assert.deepEqual((await collected(model.models.list())).map((one) => one.id), ['smollm2:135m'])
  },
  async 'a chat calls'() {
    const answer = await chat('weather?', { tools })
    const { message, finish_reason: reason } = answer.choices[0]
    assert.deepEqual([reason, message.content], ['tool_calls', 'I look.'])
    const [call] = message.tool_calls
    assert.equal(call.function.arguments, '{"city":"Bonn"}')
    const result = { role: 'tool', tool_call_id: call.id, content: 'it rains' }
    const again = await chat('', { tools, messages: [...said('weather?'), message, result] })
    assert.equal(again.choices[0].message.content, 'Take a coat.')
    const fields = { model: 'scripted', messages: said('weather?'), tools }
    const final = await scripted.chat.completions.stream(fields).finalChatCompletion()
    assert.equal(final.choices[0].finish_reason, 'tool_calls')
    assert.equal(final.choices[0].message.tool_calls[0].function.name, 'weather')
  },
  async 'a chat has a form'() {
    const format = { type: 'json_schema', json_schema: { name: 'place', schema, strict: true } }
    const fields = {
      model: 'smollm2:135m', messages: said('Which city?'), response_format: format,
    }
    const answer = await model.chat.completions.create(fields)
    assert.ok(['Ulm', 'Bonn'].includes(JSON.parse(answer.choices[0].message.content).city))
    const streamed = await model.chat.completions.stream(fields).finalContent()
    assert.ok(['Ulm', 'Bonn'].includes(JSON.parse(streamed).city))
  },
  async 'a real model says the same whole and streamed'() {
    const fields = {
      model: 'smollm2:135m', messages: said('Why is the sky blue?'), max_tokens: 8, seed: 5,
    }
    const whole = await model.chat.completions.create(fields)
    const stream = await model.chat.completions.create({ ...fields, stream: true })
    const text = (await collected(stream)).map((one) => one.choices[0].delta.content ?? '').join('')
    assert.equal(text, whole.choices[0].message.content)
  },
}

let [passed, failed] = [0, 0]
for (const [name, check] of Object.entries(checks)) {
  try {
    await check()
    passed += 1
  } catch (error) {
    failed += 1
    console.log(`FAILED with_openai.mjs: ${name}\n${error.stack}`)
  }
}
console.log(JSON.stringify({ passed, failed }))
