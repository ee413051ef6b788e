/* As much of HTTP/1.1 as both ends of the bench need. */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
  size_t head; /* its length with the empty line; 0: not whole yet */
  long length; /* -1: not said */
  int chunked;
  int closes;
} http_head;

static int header_is(const char *line, const char *end, const char *name, const char **value) {
  size_t length = strlen(name);
  if ((size_t)(end - line) <= length || line[length] != ':' || strncasecmp(line, name, length) != 0) return 0;
  *value = line + length + 1;
  while (*value < end && **value == ' ') (*value)++;
  return 1;
}

static http_head read_head(const char *bytes, size_t length) {
  http_head head = {0, -1, 0, 0};
  const char *blank = memmem(bytes, length, "\r\n\r\n", 4);
  if (blank == NULL) return head;
  head.head = (size_t)(blank - bytes) + 4;
  const char *end = blank + 2, *value;
  for (const char *line = bytes; line < end;) {
    const char *next = memchr(line, '\n', (size_t)(end - line));
    if (next == NULL) next = end - 1;
    if (header_is(line, next, "content-length", &value)) head.length = strtol(value, NULL, 10);
    else if (header_is(line, next, "transfer-encoding", &value)) head.chunked = strncasecmp(value, "chunked", 7) == 0;
    else if (header_is(line, next, "connection", &value)) head.closes = strncasecmp(value, "close", 5) == 0;
    line = next + 1;
  }
  return head;
}

/* Takes the chunks at bytes[*from] on out of their frames, in place behind bytes[*to]; 1 once the last one was there. */
static int unchunk(char *bytes, size_t length, size_t *from, size_t *to) {
  for (;;) {
    char *end = memmem(bytes + *from, length - *from, "\r\n", 2);
    if (end == NULL) return 0;
    size_t size = strtoul(bytes + *from, NULL, 16), at = (size_t)(end - bytes) + 2;
    if (at + size + 2 > length) return 0;
    memmove(bytes + *to, bytes + at, size);
    *to += size;
    *from = at + size + 2;
    if (size == 0) return 1;
  }
}
#endif
