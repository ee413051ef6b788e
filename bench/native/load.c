/*
 * A load that is never the bottleneck: keeps each connection busy with one request at a time and checks every answer.
 *
 *   load PORT CONNECTIONS WARM_MS RUN_MS REQUESTS EXPECTED [PID…]
 *
 * REQUESTS is a file of requests that are sent in turn, each as a line `LENGTH OFFSET` and the bytes of it; nine digits at
 * the offset are the id, which is counted up. An answer is good if it has status 200, that id and the bytes of the file
 * EXPECTED. One line of JSON on stdout says what was measured after the warm-up, the processor's time of PIDs included.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "http.h"

enum { READ_BYTES = 262144, EVENTS = 256, PIDS_MAX = 32, ID_DIGITS = 9, NEAR = 512, LATENCIES_MAX = 40000000 };

typedef struct {
  char *bytes;
  size_t length, id_at;
} request;

typedef struct {
  int fd, index;
  char *in;
  size_t length, room, chunk_from, body_ends, sent;
  http_head head;
  const request *request;
  char id[ID_DIGITS + 1];
  char *out;
  double since;
} connection;

static int port, poll_fd;
static request *requests;
static size_t request_count, turn;
static char *expected;
static size_t expected_length;
static unsigned long next_id = 100000000;
static unsigned long good, bad, reconnects;
static uint32_t *latencies;
static size_t latency_count;
static char first_bad[160];
static int measuring;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double own_cpu(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The processor's time of a process, its threads included. */
static double cpu_of(const char *pid) {
  char path[64], line[1024];
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  size_t n = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[n] = 0;
  char *rest = strrchr(line, ')');
  unsigned long user = 0, system = 0;
  if (rest != NULL) sscanf(rest + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static char *whole_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(2);
  }
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*length + 1);
  if (bytes == NULL || fread(bytes, 1, *length, file) != *length) exit(2);
  bytes[*length] = 0;
  fclose(file);
  return bytes;
}

static void read_requests(const char *path) {
  size_t length, at = 0;
  char *bytes = whole_file(path, &length);
  while (at < length) {
    char *end;
    requests = realloc(requests, (request_count + 1) * sizeof *requests);
    request *next = &requests[request_count++];
    next->length = strtoul(bytes + at, &end, 10);
    next->id_at = strtoul(end, &end, 10);
    next->bytes = end + 1;
    at = (size_t)(end + 1 - bytes) + next->length;
  }
}

static void note_bad(const char *why, const connection *c) {
  if (!measuring) return;
  bad++;
  if (first_bad[0] != 0) return;
  int n = snprintf(first_bad, sizeof first_bad, "%s: ", why);
  for (size_t i = 0; i < c->length && n < (int)sizeof first_bad - 1; i++) {
    char byte = c->in[i];
    first_bad[n++] = byte == '"' || byte == '\\' || byte < ' ' ? '\'' : byte;
  }
}

static void send_rest(connection *c) {
  while (c->sent < c->request->length) {
    ssize_t n = write(c->fd, c->out + c->sent, c->request->length - c->sent);
    if (n < 0) return;
    c->sent += (size_t)n;
  }
}

static void send_next(connection *c) {
  c->request = &requests[turn++ % request_count];
  c->length = 0;
  c->head.head = 0;
  c->sent = 0;
  snprintf(c->id, sizeof c->id, "%lu", next_id++);
  memcpy(c->out, c->request->bytes, c->request->length);
  memcpy(c->out + c->request->id_at, c->id, ID_DIGITS);
  c->since = now();
  send_rest(c);
}

static void dial(connection *c) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(c->fd, (void *)&address, sizeof address) != 0) {
    perror("connect");
    exit(2);
  }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(c->fd, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event);
}

static void dial_again(connection *c) {
  close(c->fd);
  if (measuring) reconnects++;
  dial(c);
}

/* 1: whole, 0: not yet, -1: nonsense */
static int whole(connection *c) {
  if (c->head.head == 0) {
    c->head = read_head(c->in, c->length);
    if (c->head.head == 0) return 0;
    c->chunk_from = c->body_ends = c->head.head;
  }
  if (c->head.chunked) return unchunk(c->in, c->length, &c->chunk_from, &c->body_ends);
  if (c->head.length < 0) return -1;
  c->body_ends = c->head.head + (size_t)c->head.length;
  return c->length >= c->body_ends;
}

static int has_id(const connection *c, const char *body, size_t length) {
  char wanted[ID_DIGITS + 8];
  int n = snprintf(wanted, sizeof wanted, "\"id\":%s", c->id);
  size_t near = length < NEAR ? length : NEAR;
  return memmem(body, near, wanted, (size_t)n) != NULL || memmem(body + length - near, near, wanted, (size_t)n) != NULL;
}

/* The beginning is looked for, so that the rest is one comparison. */
static int has_expected(const char *body, size_t length) {
  size_t first = expected_length < 32 ? expected_length : 32;
  const char *at = memmem(body, length, expected, first);
  return at != NULL && (size_t)(body + length - at) >= expected_length && memcmp(at, expected, expected_length) == 0;
}

static void take(connection *c) {
  const char *body = c->in + c->head.head;
  size_t length = c->body_ends - c->head.head;
  if (memcmp(c->in + 9, "200", 3) != 0) note_bad("status", c);
  else if (!has_id(c, body, length)) note_bad("id", c);
  else if (!has_expected(body, length)) note_bad("payload", c);
  else if (measuring) {
    good++;
    if (latency_count < LATENCIES_MAX) latencies[latency_count++] = (uint32_t)((now() - c->since) * 1e6);
  }
}

static void ready(connection *c) {
  if (c->sent < c->request->length) send_rest(c);
  for (;;) {
    if (c->room - c->length < READ_BYTES) {
      c->room = (c->length + READ_BYTES) * 2;
      c->in = realloc(c->in, c->room);
      if (c->in == NULL) abort();
    }
    size_t asked = c->room - c->length;
    ssize_t n = read(c->fd, c->in + c->length, asked);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      note_bad("connection lost", c);
      dial_again(c);
      send_next(c);
      return;
    }
    c->length += (size_t)n;
    int done = whole(c);
    if (done != 0) {
      if (done < 0) note_bad("no length", c);
      else take(c);
      if (done < 0 || c->head.closes) dial_again(c);
      send_next(c);
    }
    if ((size_t)n < asked) return;
  }
}

static void run_for(double seconds) {
  struct epoll_event events[EVENTS];
  double until = now() + seconds;
  while (now() < until) {
    int n = epoll_wait(poll_fd, events, EVENTS, 10);
    for (int i = 0; i < n; i++) ready(events[i].data.ptr);
  }
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static unsigned quantile(double share) {
  if (latency_count == 0) return 0;
  size_t at = (size_t)((double)latency_count * share);
  return latencies[at < latency_count ? at : latency_count - 1];
}

int main(int count, char **arguments) {
  if (count < 7 || count - 7 > PIDS_MAX) {
    fprintf(stderr, "load PORT CONNECTIONS WARM_MS RUN_MS REQUESTS EXPECTED [PID...]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  port = atoi(arguments[1]);
  int connections = atoi(arguments[2]), pids = count - 7;
  double before[PIDS_MAX], after[PIDS_MAX];
  read_requests(arguments[5]);
  expected = whole_file(arguments[6], &expected_length);
  size_t longest = 0;
  for (size_t i = 0; i < request_count; i++) longest = requests[i].length > longest ? requests[i].length : longest;
  latencies = malloc(LATENCIES_MAX * sizeof *latencies);
  poll_fd = epoll_create1(0);
  for (int i = 0; i < connections; i++) {
    connection *c = calloc(1, sizeof *c);
    if (c == NULL || (c->out = malloc(longest)) == NULL) abort();
    dial(c);
    send_next(c);
  }
  run_for(atof(arguments[3]) / 1000);
  for (int i = 0; i < pids; i++) before[i] = cpu_of(arguments[7 + i]);
  double own = own_cpu(), since = now();
  measuring = 1;
  run_for(atof(arguments[4]) / 1000);
  measuring = 0;
  double seconds = now() - since;
  own = own_cpu() - own;
  for (int i = 0; i < pids; i++) after[i] = cpu_of(arguments[7 + i]) - before[i];
  qsort(latencies, latency_count, sizeof *latencies, ascending);
  printf("{\"good\":%lu,\"bad\":%lu,\"reconnects\":%lu,\"seconds\":%.4f,\"p50Us\":%u,\"p99Us\":%u,\"maxUs\":%u,\"loadSeconds\":%.4f,"
         "\"firstBad\":\"%s\",\"cpuSeconds\":[",
         good, bad, reconnects, seconds, quantile(0.5), quantile(0.99), quantile(1), own, first_bad);
  for (int i = 0; i < pids; i++) printf("%s%.2f", i == 0 ? "" : ",", after[i]);
  printf("]}\n");
  return 0;
}
