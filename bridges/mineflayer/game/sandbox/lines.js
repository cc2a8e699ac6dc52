'use strict';

const FRAME = /^\s*at (.*?)\s*\(?program\.js:(\d+)(?::(\d+))?\)?\s*$/;

/**
 * Returns the program's part of a stack of QuickJS: {line: number | null of the innermost frame of
 * program.js, frames: text, one "name (line L)" per frame}. Frames of the prelude are left out.
 */
function linesOf(stack) {
  let line = null;
  const frames = [];
  for (const text of String(stack ?? '').split('\n')) {
    const match = FRAME.exec(text);
    if (!match) continue;
    line ??= Number(match[2]);
    frames.push(`at ${match[1] || 'program'} (line ${match[2]})`);
  }
  return { line, frames: frames.slice(0, 20).join('\n') };
}

module.exports = { linesOf };
