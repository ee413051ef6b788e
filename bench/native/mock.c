/*
 * An MCP server that is never the bottleneck.
 *
 *   mock stdio|http modern|legacy TOOLS [FILE WITH THE RESULT OF tools/list]
 *
 * http: any path, any free port of the loopback, which is said on stdout; no streams, no checks.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "http.h"
#include "replies.h"

enum { READ_BYTES = 262144, EVENTS = 256 };

typedef struct {
  int fd, waits; /* waits: for the socket to take more */
  text in;
  char head[ID_MAX + 384];
  size_t head_length, sent;
  const char *tail;
  size_t tail_length;
} connection;

static mock served;

static void room_for(text *buffer, size_t bytes) {
  if (buffer->room - buffer->length >= bytes) return;
  buffer->room = buffer->length + bytes;
  buffer->text = realloc(buffer->text, buffer->room);
  if (buffer->text == NULL) abort();
}

/* -1: broken, 0: more is waiting, 1: all was taken */
static int flush_reply(connection *c) {
  while (c->sent < c->head_length + c->tail_length) {
    size_t in_head = c->sent < c->head_length ? c->head_length - c->sent : 0;
    size_t in_tail = c->sent > c->head_length ? c->sent - c->head_length : 0;
    struct iovec parts[2] = {{c->head + c->sent, in_head}, {(char *)c->tail + in_tail, c->tail_length - in_tail}};
    ssize_t n = in_head > 0 ? writev(c->fd, parts, 2) : write(c->fd, parts[1].iov_base, parts[1].iov_len);
    if (n < 0) return errno == EAGAIN ? 0 : -1;
    c->sent += (size_t)n;
  }
  c->sent = c->head_length = c->tail_length = 0;
  return 1;
}

static void prepare(connection *c, const char *request, span body) {
  reply reply;
  static unsigned long sessions;
  char session[64] = "";
  c->tail_length = c->sent = 0;
  if (request[0] != 'P') { /* no POST: no streams here, and a session may always be ended */
    c->head_length = (size_t)snprintf(c->head, sizeof c->head, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n",
                                      request[0] == 'D' ? "200 OK" : "405 Method Not Allowed\r\nAllow: POST, DELETE");
    return;
  }
  answer(&served, body, &reply);
  if (reply.kind == REPLY_NONE) {
    c->head_length = (size_t)snprintf(c->head, sizeof c->head, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    return;
  }
  if (reply.kind == REPLY_INITIALIZED) snprintf(session, sizeof session, "Mcp-Session-Id: bench-%d-%lu\r\n", getpid(), ++sessions);
  c->head_length = (size_t)snprintf(c->head, sizeof c->head,
                                    "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%.*s",
                                    reply.kind == REPLY_UNKNOWN && served.modern ? "404 Not Found" : "200 OK", session,
                                    reply.head_length + reply.tail_length, (int)reply.head_length, reply.head);
  c->tail = reply.tail;
  c->tail_length = reply.tail_length;
}

/* Answers what has come, one request at a time; -1: broken. */
static int serve(connection *c, int poll) {
  size_t from = 0;
  int flushed = 1;
  while (flushed == 1 && from < c->in.length) {
    char *bytes = c->in.text + from;
    size_t there = c->in.length - from;
    http_head head = read_head(bytes, there);
    if (head.head == 0) break;
    size_t ends = head.head, body_ends = head.head;
    if (head.chunked) {
      /* Unframed in place, so only once all of it is there: bodies of requests are small. */
      if (memmem(bytes + head.head, there - head.head, "0\r\n\r\n", 5) == NULL || !unchunk(bytes, there, &ends, &body_ends)) break;
    } else if (head.length > 0) ends = body_ends = head.head + (size_t)head.length;
    if (ends > there) break;
    prepare(c, bytes, (span){bytes + head.head, body_ends - head.head});
    from += ends;
    flushed = flush_reply(c);
  }
  if (flushed < 0) return -1;
  if (from > 0) {
    memmove(c->in.text, c->in.text + from, c->in.length - from);
    c->in.length -= from;
  }
  if ((flushed == 0) != c->waits) {
    c->waits = flushed == 0;
    struct epoll_event event = {.events = c->waits ? EPOLLOUT : EPOLLIN, .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_MOD, c->fd, &event);
  }
  return 0;
}

static int ready(connection *c, int poll) {
  if (c->waits) {
    int flushed = flush_reply(c);
    if (flushed <= 0) return flushed;
    return serve(c, poll);
  }
  room_for(&c->in, READ_BYTES);
  ssize_t n = read(c->fd, c->in.text + c->in.length, c->in.room - c->in.length);
  if (n < 0 && errno == EAGAIN) return 0;
  if (n <= 0) return -1;
  c->in.length += (size_t)n;
  return serve(c, poll);
}

static void accept_all(int listener, int poll) {
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection *c = calloc(1, sizeof *c);
    if (c == NULL) abort();
    c->fd = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
  }
}

static int serve_http(void) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), poll = epoll_create1(0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (bind(listener, (void *)&address, sizeof address) != 0 || listen(listener, 4096) != 0) return 1;
  getsockname(listener, (void *)&address, &length);
  printf("listening %d\n", ntohs(address.sin_port));
  fflush(stdout);
  struct epoll_event event = {.events = EPOLLIN}, events[EVENTS];
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int n = epoll_wait(poll, events, EVENTS, -1);
    for (int i = 0; i < n; i++) {
      connection *c = events[i].data.ptr;
      if (c == NULL) accept_all(listener, poll);
      else if (ready(c, poll) < 0) {
        close(c->fd);
        free(c->in.text);
        free(c);
      }
    }
  }
}

static int write_all(const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t n = write(1, bytes, length);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) usleep(50);
    else if (n < 0) return -1;
    else bytes += n, length -= (size_t)n;
  }
  return 0;
}

static int serve_stdio(void) {
  text in = {0}, out = {0};
  for (;;) {
    room_for(&in, READ_BYTES);
    ssize_t n = read(0, in.text + in.length, in.room - in.length);
    if (n <= 0) return 0;
    in.length += (size_t)n;
    size_t from = 0;
    for (char *end; (end = memchr(in.text + from, '\n', in.length - from)) != NULL; from = (size_t)(end - in.text) + 1) {
      reply reply;
      answer(&served, (span){in.text + from, (size_t)(end - in.text) - from}, &reply);
      if (reply.kind == REPLY_NONE) continue;
      append(&out, reply.head, reply.head_length);
      append(&out, reply.tail, reply.tail_length);
      append(&out, "\n", 1);
    }
    memmove(in.text, in.text + from, in.length - from);
    in.length -= from;
    if (write_all(out.text, out.length) < 0) return 0;
    out.length = 0;
  }
}

static char *whole_file(const char *path) {
  FILE *file = fopen(path, "rb");
  text all = {0};
  char block[65536];
  if (file == NULL) abort();
  for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;) append(&all, block, n);
  append(&all, "", 1);
  fclose(file);
  return all.text;
}

int main(int count, char **arguments) {
  if (count < 4) {
    fprintf(stderr, "mock stdio|http modern|legacy TOOLS [LIST FILE]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  served.modern = strcmp(arguments[2], "modern") == 0;
  served.tools = atoi(arguments[3]);
  served.listed = count > 4 ? whole_file(arguments[4]) : NULL;
  return strcmp(arguments[1], "http") == 0 ? serve_http() : serve_stdio();
}
