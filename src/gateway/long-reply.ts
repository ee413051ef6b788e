/** Long replies are on their way until their last byte: what watches over a call watches over its rest, too. */
import type { Call, Reply, ReplyReader, ReplyRest } from '../protocol/call.ts';
import { own, RpcError } from '../protocol/errors.ts';

/** Calls `over` once, when the reply is whole, broken or given up; at once where it has no rest. */
export function whenOver(reply: Reply, over: () => void): Reply {
  const { rest } = reply;
  if (rest === undefined) {
    over();
    return reply;
  }
  let isOver = false;
  const end = (): void => {
    if (!isOver) over();
    isOver = true;
  };
  const read = (reader: ReplyReader): void =>
    rest.read({
      data: (chunk) => reader.data(chunk),
      end: () => {
        end();
        reader.end();
      },
      fail: (cause) => {
        end();
        reader.fail(cause);
      },
    });
  const destroy = (): void => {
    end();
    rest.destroy();
  };
  return { ...reply, rest: { bytes: rest.bytes, read, resume: () => rest.resume(), destroy } };
}

/** The reply whose rest renews the deadline of its call with each piece, and breaks where the call is aborted. */
export function abortable(reply: Reply, call: Call): Reply {
  const { rest } = reply;
  if (rest === undefined) return reply;
  const { signal } = call;
  const read = (reader: ReplyReader): void => {
    signal.listen((cause) => {
      rest.destroy();
      reader.fail(cause);
    });
    if (signal.cause !== undefined) return;
    rest.read({
      data: (chunk) => {
        call.deadline?.renew();
        return reader.data(chunk);
      },
      end: () => {
        signal.unlisten();
        reader.end();
      },
      fail: (cause) => {
        signal.unlisten();
        reader.fail(cause);
      },
    });
  };
  const destroy = (): void => {
    signal.unlisten();
    rest.destroy();
  };
  return { ...reply, rest: { bytes: rest.bytes, read, resume: () => rest.resume(), destroy } };
}

/** The same rest; tells once how many bytes there were when it was whole, broken or given up, and by what. */
export function counted(rest: ReplyRest, over: (bytes: number, cause: Error | undefined) => void): ReplyRest {
  let bytes = 0;
  let isOver = false;
  const end = (cause: Error | undefined): void => {
    if (!isOver) over(bytes, cause);
    isOver = true;
  };
  const read = (reader: ReplyReader): void =>
    rest.read({
      data: (chunk) => {
        bytes += chunk.length;
        return reader.data(chunk);
      },
      end: () => {
        end(undefined);
        reader.end();
      },
      fail: (cause) => {
        end(cause);
        reader.fail(cause);
      },
    });
  const destroy = (): void => {
    end(new RpcError(own.cancelled, 'The client closed the connection'));
    rest.destroy();
  };
  return { bytes: rest.bytes, read, resume: () => rest.resume(), destroy };
}
