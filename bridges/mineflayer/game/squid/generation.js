'use strict';
/** What flying-squid asks for a world's generator: the one that came with the server's options. */
module.exports = ({ generate }) => generate;
