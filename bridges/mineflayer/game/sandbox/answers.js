'use strict';
/** What crosses from the host to a program and back, as plain data. */
const { EndReason } = require('./engine');

/** Characters of an answer. */
const MAX_ANSWER = 1 << 20;

/** Returns a report that contains texts, whatever the program made of it. */
function textsOf(report) {
  const text = (value, otherwise) => (typeof value === 'string' ? value : otherwise);
  return {
    type: text(report?.type, 'Error'),
    message: text(report?.message, 'the error cannot be read'),
    stack: text(report?.stack, '')
  };
}

/** Returns plain data, or refuses what cannot be copied. */
function plain(value) {
  const text = JSON.stringify(value ?? null);
  if (text.length > MAX_ANSWER) throw new Error('the answer is too long');
  return JSON.parse(text);
}

/** Returns [type, message] of a host error: never its stack, which contains file names of the host. */
function errorPair(error) {
  const isOurs = error?.name === 'ArgumentError' || error instanceof EndReason;
  const type = error instanceof EndReason ? error.type : isOurs ? 'ArgumentError' : 'ActionError';
  const text = String(error?.message ?? error).split('\n')[0].replace(/^(Error: )+/, '');
  return [type, text.slice(0, 500) || 'it failed without a reason'];
}

module.exports = { MAX_ANSWER, errorPair, plain, textsOf };
