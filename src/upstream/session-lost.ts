/** The server has forgotten the session and did nothing with the request that met it. */
export class SessionLost extends Error {
  constructor(cause: Error) {
    super('the server has forgotten the session', { cause });
    this.name = 'SessionLost';
  }
}
