'use strict';
/** The generator of flying-squid's world: the one in the server's options. */
module.exports = ({ generate }) => generate;
