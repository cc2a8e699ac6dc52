'use strict';

/**
 * The commands of a start. `serv.survival.command(command, source)` executes one, as data
 * (bridges/mineflayer/commands.py parses the text), for a source (commands/source.js), by default
 * the console at the spawn; it returns the game's answer and throws a UserError, in the game's
 * words, where nothing could be done. A command whose result is there already has succeeded.
 *
 * Players have no commands at all. `gamut:forbidden` tells what a client sends that only operators and
 * players in creative mode may, whatever became of it.
 */

const { UserError } = require('flying-squid');
const { sourceOf, consoleOf, entitiesOf, advance } = require('./commands/source');
const { isBlock } = require('./commands/blocks');

const name = 'commands';
const EXECUTORS = {
  ...require('./commands/items'),
  ...require('./commands/blocks').EXECUTORS,
  ...require('./commands/beings'),
  ...require('./commands/world'),
};

/** Returns the sources that are left after a step of /execute. */
function after(serv, source, { name: step, args }) {
  switch (step) {
    case 'as':
      return entitiesOf(serv, source, args.targets).map((entity) => ({ ...source, entity }));
    case 'at':
      return entitiesOf(serv, source, args.targets).map((entity) => ({
        ...sourceOf(entity),
        entity: source.entity,
      }));
    case 'positioned':
    case 'rotated':
    case 'facing':
      if (!args.targets) return [advance(source, step, args)];
      return entitiesOf(serv, source, args.targets).map((entity) =>
        advance(source, step, { ...args, entity }),
      );
    case 'if':
    case 'unless':
      return holds(serv, source, args) === (step === 'if') ? [source] : [];
    default:
      return [advance(source, step, args)];
  }
}

function holds(serv, source, { targets, at, block }) {
  if (targets) return entitiesOf(serv, source, targets).length > 0;
  return isBlock(serv, source, at, block);
}

function execute(serv, source, { steps, run }) {
  let sources = [source];
  for (const step of steps) sources = sources.flatMap((each) => after(serv, each, step));
  const answers = run ? sources.map((each) => command(serv, each, run)) : [];
  return answers.length ? answers.join('; ') : 'Test passed';
}

function command(serv, source, data) {
  if (data.name === 'execute') return execute(serv, source, data);
  const run = EXECUTORS[data.name];
  if (!run) throw new UserError(`Unknown or incomplete command: ${data.name}`);
  return run(serv, source, data.args);
}

function server(serv) {
  serv.survival.command = (data, source = consoleOf(serv)) => command(serv, source, data);
  // None of flying-squid's own commands is for players.
  for (const each of Object.values(serv.commands.uniqueHash)) {
    if (each.params && each.base !== 'help') each.params.op = true;
  }
}

/** Packets of operators and of creative mode. */
const FORBIDDEN = ['set_creative_slot', 'update_command_block', 'update_command_block_minecart', 'update_structure_block',
  'update_jigsaw_block', 'generate_structure', 'query_block_nbt', 'query_entity_nbt', 'set_difficulty', 'lock_difficulty',
  'spectate'];

function player(player, serv) {
  const tell = (rule, evidence) => serv.emit('gamut:forbidden', { player, rule, evidence: evidence.slice(0, 256) });
  for (const packet of FORBIDDEN) {
    player._client.on(packet, (sent) => {
      if (player.gameMode !== 1) tell('protocol_access', `${packet} ${JSON.stringify(sent)}`);
    });
  }
  player._client.on('chat', ({ message = '' } = {}) => { if (message.startsWith('/')) tell('operator_command', message); });
  player._client.on('tab_complete', ({ text = '' } = {}) => { if (text.startsWith('/')) tell('operator_command', text); });
}

module.exports = { name, player, server, sourceOf };
