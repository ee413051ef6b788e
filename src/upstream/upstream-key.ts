/** What an upstream is kept under where those of several contexts meet: no two have the same. */
export const upstreamKey = (name: string, context: string | undefined): string =>
  context === undefined ? name : `${name}\n${context}`;
