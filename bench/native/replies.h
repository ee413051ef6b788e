/* What the mock answers: a head that is made for each request, and a tail that is made once. */
#ifndef BENCH_REPLIES_H
#define BENCH_REPLIES_H
#include <stdio.h>
#include <stdlib.h>
#include "json.h"

enum { ID_MAX = 128, TAILS_MAX = 16 };

typedef enum { REPLY_NONE, REPLY_RESULT, REPLY_INITIALIZED, REPLY_UNKNOWN } reply_kind;

typedef struct {
  reply_kind kind;
  char head[ID_MAX + 128]; /* up to the value of `result` or `error`, or into it */
  size_t head_length;
  const char *tail; /* all after that */
  size_t tail_length;
} reply;

typedef struct {
  int modern;
  int tools;
  const char *listed; /* the result of tools/list, where it was given */
} mock;

typedef struct {
  char *text;
  size_t length, room;
} text;

static void append(text *to, const char *bytes, size_t length) {
  if (to->length + length > to->room) {
    to->room = (to->length + length) * 2;
    to->text = realloc(to->text, to->room);
    if (to->text == NULL) abort();
  }
  memcpy(to->text + to->length, bytes, length);
  to->length += length;
}

static void append_text(text *to, const char *bytes) { append(to, bytes, strlen(bytes)); }

/* The same bytes as in payload.mjs, which checks them. */
static const char pattern[] = "A line of what a tool said, with \\\"quotes\\\", caf\xc3\xa9 and \xe2\x82\xac.\\n";

static text call_tail(const mock *mock, size_t length) {
  text tail = {0};
  size_t step = sizeof pattern - 1, i = 0;
  append_text(&tail, "{\"content\":[{\"type\":\"text\",\"text\":\"");
  for (; i + step <= length; i += step) append(&tail, pattern, step);
  for (; i < length; i++) append(&tail, "x", 1);
  append_text(&tail, "\"}],\"isError\":false");
  append_text(&tail, mock->modern ? ",\"resultType\":\"complete\"}}" : "}}");
  return tail;
}

static text list_tail(const mock *mock) {
  text tail = {0};
  if (mock->listed != NULL) {
    append_text(&tail, mock->listed);
    append_text(&tail, "}");
    return tail;
  }
  append_text(&tail, "{\"tools\":[");
  for (int i = 0; i < mock->tools; i++) {
    char tool[1024];
    int length = snprintf(
        tool, sizeof tool,
        "%s{\"name\":\"tool_%d\",\"title\":\"Tool %d\",\"description\":\"Reads item %d of the collection and says what is known "
        "of it, as text. Meant for questions about the state of one item; changes nothing, neither the item nor what refers to "
        "it, and may be repeated.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"bytes\":{\"type\":\"integer\","
        "\"description\":\"How long the text is\",\"minimum\":0},\"path\":{\"type\":\"string\",\"description\":\"Where the item "
        "is\"},\"mode\":{\"type\":\"string\",\"enum\":[\"short\",\"long\",\"raw\"]},\"tags\":{\"type\":\"array\",\"items\":"
        "{\"type\":\"string\"}}}},\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}",
        i == 0 ? "" : ",", i, i, i);
    append(&tail, tool, (size_t)length);
  }
  append_text(&tail, mock->modern ? "],\"resultType\":\"complete\",\"ttlMs\":3600000,\"cacheScope\":\"public\"}}" : "]}}");
  return tail;
}

static const char discovered[] =
    "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},\"ttlMs\":3600000,"
    "\"cacheScope\":\"public\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"bench-mock\",\"version\":\"1.0.0\"}}}}";
static const char initialized[] =
    "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"bench-mock\",\"version\":"
    "\"1.0.0\"}}}";
static const char unknown[] = "{\"code\":-32601,\"message\":\"Method not found\"}}";

static void use_tail(reply *reply, const char *tail, size_t length) {
  reply->tail = tail;
  reply->tail_length = length;
}

static void use_call(reply *reply, const mock *mock, span message) {
  static struct {
    size_t bytes;
    text tail;
  } made[TAILS_MAX];
  span bytes = member(member(member(message, "params"), "arguments"), "bytes");
  size_t wanted = bytes.at == NULL ? 200 : strtoul(bytes.at, NULL, 10);
  int i = 0;
  while (i < TAILS_MAX - 1 && made[i].tail.text != NULL && made[i].bytes != wanted) i++;
  if (made[i].tail.text == NULL || made[i].bytes != wanted) {
    free(made[i].tail.text);
    made[i].bytes = wanted;
    made[i].tail = call_tail(mock, wanted);
  }
  use_tail(reply, made[i].tail.text, made[i].tail.length);
}

/* Fills the reply to one message; the tail stays valid until TAILS_MAX other lengths were asked for. */
static void answer(const mock *mock, span message, reply *reply) {
  static text list;
  span id = member(message, "id"), method = member(message, "method");
  reply->kind = REPLY_NONE;
  if (id.at == NULL || id.length > ID_MAX || method.at == NULL) return;
  reply->kind = REPLY_RESULT;
  if (says(method, "tools/call")) use_call(reply, mock, message);
  else if (says(method, "tools/list")) {
    if (list.text == NULL) list = list_tail(mock);
    use_tail(reply, list.text, list.length);
  } else if (says(method, "ping")) use_tail(reply, "{}}", 3);
  else if (mock->modern && says(method, "server/discover")) use_tail(reply, discovered, sizeof discovered - 1);
  else if (!mock->modern && says(method, "initialize")) {
    reply->kind = REPLY_INITIALIZED;
    use_tail(reply, initialized, sizeof initialized - 1);
  } else {
    reply->kind = REPLY_UNKNOWN;
    use_tail(reply, unknown, sizeof unknown - 1);
  }
  int n = snprintf(reply->head, sizeof reply->head, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":", (int)id.length, id.at,
                   reply->kind == REPLY_UNKNOWN ? "error" : "result");
  if (reply->kind == REPLY_INITIALIZED) {
    span asked = member(member(message, "params"), "protocolVersion");
    if (asked.at == NULL || asked.length > 16) asked = (span){"\"2025-11-25\"", 12};
    n += snprintf(reply->head + n, sizeof reply->head - (size_t)n, "{\"protocolVersion\":%.*s,", (int)asked.length, asked.at);
  }
  reply->head_length = (size_t)n;
}
#endif
