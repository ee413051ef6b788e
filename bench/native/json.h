/* As much of JSON as the mock needs: where a member of an object begins and ends. */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H
#include <stddef.h>
#include <string.h>

typedef struct {
  const char *at; /* NULL: there is none */
  size_t length;
} span;

static const char *past_space(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
  return p;
}

/* p is at the opening quote. */
static const char *past_string(const char *p, const char *end) {
  for (p++; p < end; p++) {
    if (*p == '\\') p++;
    else if (*p == '"') return p + 1;
  }
  return end;
}

static const char *past_value(const char *p, const char *end) {
  int depth = 0;
  while (p < end) {
    if (*p == '"') {
      p = past_string(p, end);
      if (depth == 0) return p;
      continue;
    }
    if (*p == '{' || *p == '[') depth++;
    else if (*p == '}' || *p == ']') {
      if (depth == 0) return p;
      if (--depth == 0) return p + 1;
    } else if (depth == 0 && (*p == ',' || *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) return p;
    p++;
  }
  return end;
}

/* The value of a member of the object; strings keep their quotes. */
static span member(span object, const char *name) {
  span none = {NULL, 0};
  if (object.at == NULL) return none;
  const char *end = object.at + object.length;
  const char *p = past_space(object.at, end);
  size_t wanted = strlen(name);
  if (p >= end || *p != '{') return none;
  for (p = past_space(p + 1, end); p < end && *p == '"'; p = past_space(p + 1, end)) {
    const char *key = p;
    p = past_string(p, end);
    int found = (size_t)(p - key) == wanted + 2 && memcmp(key + 1, name, wanted) == 0;
    p = past_space(p, end);
    if (p >= end || *p != ':') return none;
    p = past_space(p + 1, end);
    const char *value = p;
    p = past_value(p, end);
    if (found) return (span){value, (size_t)(p - value)};
    p = past_space(p, end);
    if (p >= end || *p != ',') return none;
  }
  return none;
}

static int says(span value, const char *text) {
  size_t length = strlen(text);
  return value.at != NULL && value.length == length + 2 && memcmp(value.at + 1, text, length) == 0;
}
#endif
