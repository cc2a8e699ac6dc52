'use strict';
/**
 * Writes the table of host calls into docs/mineflayer-api.md, between its two marks:
 *
 *     node bridges/mineflayer/game/sandbox/describe.js docs/mineflayer-api.md
 */
const fs = require('node:fs');
const { makeApi } = require('./api');

const BEGIN = '<!-- calls -->';
const END = '<!-- end of calls -->';

function typeText(spec) {
  switch (spec.type) {
    case 'number':
    case 'integer': return spec.min === undefined ? spec.type : `${spec.type} ${spec.min}..${spec.max}`;
    case 'text': return `text <= ${spec.max}`;
    case 'choice': return spec.of.join(' / ');
    case 'list': return `[${typeText(spec.of)}] <= ${spec.max}`;
    case 'record': return `{${Object.entries(spec.fields).map((field) => named(...field)).join(', ')}}`;
    default: return spec.type;
  }
}

const named = (name, spec) => {
  const isOptional = spec.optional || 'default' in spec;
  const otherwise = spec.default === undefined ? '' : ` = ${JSON.stringify(spec.default)}`;
  return `${name}${isOptional ? '?' : ''}: ${typeText(spec)}${otherwise}`;
};

function ticksText(entry) {
  if (!entry.async) return '';
  return typeof entry.ticks === 'number' ? String(entry.ticks) : 'as asked';
}

/** Returns the table of an API's calls as Markdown. */
function tableOf(api) {
  const rows = [...api.entries.values()].map((entry) => {
    const args = entry.args.map((spec) => named(spec.name, spec)).join('; ').replaceAll('|', '/');
    const returns = entry.returns.replaceAll('|', '/');
    return `| \`${entry.name}\` | ${args} | ${returns} | ${entry.cost} | ${ticksText(entry)} | ${entry.doc} |`;
  });
  const head = ['| call | arguments | returns | counts as | ends after (ticks) | what |', '|---|---|---|---|---|---|'];
  return [...head, ...rows].join('\n');
}

function main(file) {
  const text = fs.readFileSync(file, 'utf8');
  const [before, rest] = text.split(BEGIN);
  const after = rest.split(END)[1];
  fs.writeFileSync(file, `${before}${BEGIN}\n${tableOf(makeApi())}\n${END}${after}`);
}

if (require.main === module) main(process.argv[2]);

module.exports = { tableOf };
