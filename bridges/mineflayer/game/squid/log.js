'use strict';
/**
 * Replaces flying-squid's log: no terminal, no file, no list of servers that keeps them alive. A
 * server's messages go to `serv.gamut.log(level, text)`.
 */
module.exports.server = (serv, options) => {
  serv.gamut = options.gamut;
  const say = (level) => (text) => serv.gamut.log(level, String(text));
  serv.log = say('info');
  serv.info = say('info');
  serv.warn = say('warn');
  serv.err = say('error');
  serv.debug = undefined;
  serv.createLog = () => {};
  serv.on('error', (error) => serv.gamut.fail(error));
  serv.on('clientError', (client, error) => serv.gamut.fail(error));
};
