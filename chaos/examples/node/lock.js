#!/usr/bin/env node
// A Redlock in Node.js without packages, for redlock-chaos -exec; docs/evidence/node.md describes it.
//
// It is an example, not a lock to use: no waiting, no fencing, no renewal. With --plain-del its releases remove the key
// of another owner too, which redlock-chaos finds out.
'use strict'
const crypto = require('crypto')
const net = require('net')
const readline = require('readline')

const plainDel = process.argv.includes('--plain-del')
const release = plainDel ? "return redis.call('DEL', KEYS[1])"
  : "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
const extend = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end " +
  'return 0'

const now = () => Number(process.hrtime.bigint() / 1000n) / 1000 // milliseconds, by a clock that nobody sets

// Master has one connection for all requests, so a release comes after the acquire that it undoes, even if the latter's
// answer is late. A connection without an answer for a second is replaced.
class Master {
  constructor(address) {
    const colon = address.lastIndexOf(':')
    this.host = address.slice(0, colon)
    this.port = Number(address.slice(colon + 1))
    this.socket = null
    this.pending = [] // in the order of the requests
  }

  // ask resolves with true or false, or with null if there is no answer in time.
  ask(timeout, ...words) {
    return new Promise((resolve) => {
      if (!this.socket) this.connect()
      const oldest = this.pending[0]
      if (oldest && now() - oldest.asked > 1000) {
        this.drop(this.socket)
        this.connect()
      }
      const timer = setTimeout(resolve, timeout, null)
      this.pending.push({ asked: now(), answer: (vote) => { clearTimeout(timer); resolve(vote) } })
      const encoded = words.map((w) => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`)
      this.socket.write(`*${words.length}\r\n${encoded.join('')}`)
    })
  }

  connect() {
    const socket = net.connect(this.port, this.host)
    let text = ''
    socket.setNoDelay(true).setEncoding('utf8')
    socket.on('data', (piece) => {
      if (this.socket !== socket) return
      text += piece
      for (let end; (end = text.indexOf('\r\n')) >= 0; text = text.slice(end + 2)) {
        const line = text.slice(0, end)
        const no = line === '$-1' || line === ':0'
        if (this.pending.length > 0) this.pending.shift().answer(line[0] === '-' ? null : !no)
      }
    })
    socket.on('error', () => this.drop(socket))
    socket.on('close', () => this.drop(socket))
    this.socket = socket
  }

  drop(socket) {
    if (socket) socket.destroy()
    if (this.socket !== socket) return
    const lost = this.pending
    this.socket = null
    this.pending = []
    for (const { answer } of lost) answer(null)
  }
}

class Lock {
  constructor(addresses) {
    this.masters = addresses.map((a) => new Master(a))
    this.quorum = Math.floor(addresses.length / 2) + 1
    this.holds = new Map() // { key, ttl } by owner
    this.cleaning = new Set()
  }

  // everywhere asks all masters at once. A majority of the same answers is enough to know, but all are waited for.
  everywhere(timeout, ...words) { return Promise.all(this.masters.map((m) => m.ask(timeout, ...words))) }

  async acquire(key, ttl) {
    const begun = now()
    const owner = crypto.randomBytes(16).toString('hex')
    const votes = await this.everywhere(Math.max(50, ttl / 20), 'SET', key, owner, 'NX', 'PX', Math.floor(ttl))
    const valid = ttl - ttl / 100 - 2 // clocks of masters may run one percent faster
    if (count(votes, true) >= this.quorum && now() - begun < valid) {
      this.holds.set(owner, { key, ttl })
      return { hold: owner, owner, valid_ms: valid }
    }
    await this.giveBack(key, owner, ttl)
    if (count(votes, null) >= this.quorum) return { error: 'no-quorum', message: JSON.stringify(votes) }
    return { error: 'held', message: JSON.stringify(votes) }
  }

  async extend(owner, ttl) {
    const { key } = this.holds.get(owner)
    const votes = await this.everywhere(Math.max(50, ttl / 20), 'EVAL', extend, 1, key, owner, Math.floor(ttl))
    if (count(votes, true) < this.quorum) return { error: 'lost', message: JSON.stringify(votes) }
    return { valid_ms: ttl - ttl / 100 - 2 }
  }

  async release(owner) {
    const { key, ttl } = this.holds.get(owner)
    this.holds.delete(owner)
    const votes = await this.giveBack(key, owner, ttl)
    return count(votes, true) < this.quorum ? { error: 'lost', message: JSON.stringify(votes) } : {}
  }

  // giveBack removes the key from all masters. A master that does not answer is asked again until it does, or the key
  // has expired there.
  async giveBack(key, owner, ttl) {
    const timeout = Math.max(50, ttl / 20)
    const ask = (m) => m.ask(timeout, 'EVAL', release, 1, key, owner)
    const end = now() + ttl
    const again = async (m) => {
      while (now() < end) {
        await new Promise((resolve) => setTimeout(resolve, 100))
        if (await ask(m) !== null) return
      }
    }
    const votes = await Promise.all(this.masters.map(ask))
    votes.forEach((vote, i) => {
      if (vote !== null) return
      const work = again(this.masters[i]).finally(() => this.cleaning.delete(work))
      this.cleaning.add(work)
    })
    return votes
  }
}

const count = (votes, vote) => votes.filter((v) => v === vote).length

let lock = null

async function serve(r) {
  switch (r.op) {
    case 'open':
      lock = new Lock(r.masters)
      return {}
    case 'acquire':
      return lock.acquire(r.key, r.ttl_ms)
    case 'extend':
      return lock.extend(r.hold, r.ttl_ms)
    case 'release':
      return lock.release(r.hold)
    case 'close':
      await Promise.race([Promise.all(lock.cleaning), new Promise((resolve) => setTimeout(resolve, 2000))])
      return {}
    default:
      return { error: 'unsupported', message: r.op }
  }
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  const r = JSON.parse(line)
  if (r.op === 'cancel') return // an attempt takes a twentieth of the ttl, so it need not be cancelled
  const answer = await serve(r).catch((e) => ({ error: 'failed', message: String(e) }))
  process.stdout.write(JSON.stringify({ id: r.id, ...answer }) + '\n', () => { if (r.op === 'close') process.exit(0) })
})
