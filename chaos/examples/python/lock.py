#!/usr/bin/env python3
"""A Redlock in Python's standard library alone, for redlock-chaos run -exec; docs/evidence/chaos.md has the protocol.

It is a reference for the protocol, not a lock to use: one thread for each request, no waiting, no fencing, no renewal.
With --quorum N it takes N grants for a majority, and with --clock-tokens its fencing tokens are the time of day.
redlock-chaos finds out both.
"""

import argparse
import json
import os
import queue
import socket
import ssl
import sys
import threading
import time
import urllib.parse

ACQUIRE = ("SET", "{key}", "{owner}", "NX", "PX", "{ttl}")
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
EXTEND = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"


class Master:
    """One master: one connection for one request at a time, replaced after any error."""

    def __init__(self, url, tls, name):
        parts = urllib.parse.urlsplit(url)
        self.address = (parts.hostname, parts.port)
        self.tls, self.name = tls if parts.scheme == "rediss" else None, name
        self.login = []  # the first commands of a new connection
        if parts.password is not None:
            user, password = urllib.parse.unquote(parts.username or "default"), urllib.parse.unquote(parts.password)
            self.login.append(("AUTH", user, password))
        if parts.path.strip("/"):
            self.login.append(("SELECT", parts.path.strip("/")))
        self.idle, self.away = queue.LifoQueue(), 0
        self.left = queue.PriorityQueue()  # (when to ask next, pause, key, owner, when it has expired)
        threading.Thread(target=self.clean, daemon=True).start()

    def leave(self, key, owner, end):
        self.left.put((time.monotonic() + 0.1, 0.1, key, owner, end))

    def clean(self):
        """Removes what was left behind. It asks until a key is removed, since the SET may still be on its way."""
        while True:
            when, pause, key, owner, end = self.left.get()
            time.sleep(max(0, when - time.monotonic()))
            gone = time.monotonic() >= end
            try:
                if not gone:
                    gone = self.ask(0.5, "EVAL", RELEASE, 1, key, owner)
                    pause = min(2 * pause, 1)
            except OSError:
                self.forget()
                time.sleep(0.1)  # the master is away, also for all that is left to ask
            if not gone:
                self.left.put((time.monotonic() + pause, pause, key, owner, end))
            self.left.task_done()

    def forget(self):
        """Closes the idle connections, which may all be broken."""
        try:
            while True:
                self.idle.get_nowait().close()
        except queue.Empty:
            return

    def connect(self, timeout, end):
        """Makes a connection, but not within a tenth of a second after one that failed."""
        if time.monotonic() < self.away:
            raise OSError("the last connection failed just now")
        try:
            conn = socket.create_connection(self.address, timeout)
            if self.tls:
                conn = self.tls.wrap_socket(conn, server_hostname=self.name)
            for first in self.login:
                self.say(conn, end, *first)
        except OSError:
            self.away = time.monotonic() + 0.1
            raise
        return conn

    def ask(self, timeout, *words):
        end = time.monotonic() + timeout
        try:
            conn = self.idle.get_nowait()
        except queue.Empty:
            conn = self.connect(timeout, end)
        answer = self.say(conn, end, *words)
        self.idle.put(conn)
        return answer

    @staticmethod
    def say(conn, end, *words):
        try:
            left = end - time.monotonic()
            if left <= 0:
                raise OSError("too late: nothing was sent")
            conn.settimeout(left)
            encoded = [str(w).encode() for w in words]
            conn.sendall(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in encoded))
            line = b""
            while not line.endswith(b"\r\n"):
                piece = conn.recv(256)
                if not piece:
                    raise OSError("the connection has ended after %r" % line)
                line += piece
            if line[:1] == b"$" and line != b"$-1\r\n":
                raise OSError("another reply than was asked for: %r" % line)
            if line[:1] == b"-":
                raise OSError(line.decode().strip())
        except Exception:
            conn.close()  # a late reply must not look like the next request's reply
            raise
        return line[:1] != b"$" and line != b":0\r\n"


class Lock:
    def __init__(self, urls, tls, quorum, clock_tokens):
        context, names = None, [None] * len(urls)
        if tls:
            context, names = ssl.create_default_context(cafile=tls.get("ca")), tls["names"]
            if "cert" in tls:
                context.load_cert_chain(tls["cert"], tls["key"])
        self.masters = [Master(u, context, n) for u, n in zip(urls, names)]
        self.quorum = quorum or len(urls) // 2 + 1
        self.clock_tokens = clock_tokens
        self.holds = {}

    def everywhere(self, ask, late=None):
        """Asks all masters at the same time; returns those that said yes, said no, and did not answer. With late it
        returns as soon as a majority is impossible, and calls late with each master that then says anything but no."""
        votes, n = queue.Queue(), len(self.masters)

        def one(m):
            try:
                votes.put((m, ask(m)))
            except Exception:
                votes.put((m, None))

        def rest(left):
            for m, vote in [votes.get() for _ in range(left)]:
                if vote is not False:
                    late(m)

        for m in self.masters:
            threading.Thread(target=one, args=(m,), daemon=True).start()
        said = {True: [], False: [], None: []}
        for answered in range(1, n + 1):
            m, vote = votes.get()
            said[vote].append(m)
            if late and answered < n and len(said[False]) > n - self.quorum:
                threading.Thread(target=rest, args=(n - answered,), daemon=True).start()
                break
        return said[True], said[False], said[None]

    def acquire(self, key, ttl):
        begun, owner, timeout = time.monotonic(), os.urandom(16).hex(), max(0.05, ttl / 20000)
        words = [w.format(key=key, owner=owner, ttl=int(ttl)) for w in ACQUIRE]
        end = begun + timeout + ttl / 1000
        yes, no, silent = self.everywhere(lambda m: m.ask(timeout, *words), lambda m: m.leave(key, owner, end))
        valid = ttl - ttl / 100 - 2
        if len(yes) >= self.quorum and (time.monotonic() - begun) * 1000 < valid:
            self.holds[owner] = (key, ttl, silent)
            token = int(time.time() * 1e6) if self.clock_tokens else 0
            return {"hold": owner, "owner": owner, "valid_ms": valid, "token": token}
        self.give_back(key, owner, ttl, silent)
        if len(yes) + len(no) < self.quorum:
            return {"error": "no-quorum", "message": "%d masters did not answer" % len(silent)}
        return {"error": "held", "message": "%d masters of %d" % (len(yes), len(self.masters))}

    def extend(self, owner, ttl):
        key = self.holds[owner][0]
        timeout = max(0.05, ttl / 20000)
        yes, _, _ = self.everywhere(lambda m: m.ask(timeout, "EVAL", EXTEND, 1, key, owner, int(ttl)))
        if len(yes) < self.quorum:
            return {"error": "lost", "message": "%d masters extended it" % len(yes)}
        return {"valid_ms": ttl - ttl / 100 - 2}

    def release(self, owner):
        key, ttl, silent = self.holds.pop(owner)
        yes = self.give_back(key, owner, ttl, silent)
        if len(yes) < self.quorum:
            return {"error": "lost", "message": "%d masters had it" % len(yes)}
        return {}

    def give_back(self, key, owner, ttl, unsure):
        """Removes the key from all masters. A master without an answer is asked again until the key has expired, and so
        is one of the unsure, which did not answer the acquisition, until it has removed the key."""
        timeout = max(0.05, ttl / 20000)
        yes, no, silent = self.everywhere(lambda m: m.ask(timeout, "EVAL", RELEASE, 1, key, owner))
        for m in silent + [m for m in no if m in unsure]:
            m.leave(key, owner, time.monotonic() + ttl / 1000)
        return yes


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--quorum", type=int, default=0, help="how many grants are enough (default: a majority)")
    flags.add_argument("--clock-tokens", action="store_true", help="tokens from the time of day")
    args = flags.parse_args()
    writing = threading.Lock()
    lock = None

    def say(answer):
        with writing:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()

    def serve(r):
        try:
            if r["op"] == "acquire":
                answer = lock.acquire(r["key"], r["ttl_ms"])
            elif r["op"] == "extend":
                answer = lock.extend(r["hold"], r["ttl_ms"])
            elif r["op"] == "release":
                answer = lock.release(r["hold"])
            else:
                answer = {"error": "unsupported", "message": r["op"]}
        except Exception as e:  # report it to the harness, and continue
            answer = {"error": "failed", "message": repr(e)}
        say({"id": r["id"], **answer})

    for line in sys.stdin:
        r = json.loads(line)
        if r["op"] == "open":
            lock = Lock(r["urls"], r.get("tls"), args.quorum, args.clock_tokens)
            say({"id": r["id"], "secured": True, "tokens": args.clock_tokens})
        elif r["op"] == "close":
            end = time.monotonic() + 2
            while time.monotonic() < end and any(m.left.unfinished_tasks for m in lock.masters):
                time.sleep(0.01)
            say({"id": r["id"]})
            return
        elif r["op"] != "cancel":  # an attempt takes only a twentieth of the ttl, so it need not be canceled
            threading.Thread(target=serve, args=(r,), daemon=True).start()


main()
