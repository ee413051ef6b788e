import { describe, expect, test } from 'vitest';
import { fillUp, World } from './allowance-world.ts';

describe('allowances of one limit', () => {
  test('are a share for each worker at first', () => {
    const world = new World(4, 1_000);
    world.arrive();
    expect(world.workers.map(({ places }) => places.credit)).toEqual([250, 250, 250, 250]);
  });

  test('let one busy worker use nearly all while the others are idle', () => {
    const world = new World(4, 1_000);
    world.arrive();
    expect(fillUp(world, world.at(0))).toBeGreaterThan(940);
    expect(world.used).toBeLessThanOrEqual(1_000);
  });

  test('let a worker that wakes begin at once, and give it its share as soon as calls of the other end', () => {
    const world = new World(2, 1_000);
    world.arrive();
    const [busy, waking] = [world.at(0), world.at(1)];
    fillUp(world, busy);
    expect(waking.places.take()).toBe(true);
    let ended = 0;
    // The busy one replaces each call that ends, as long as it can.
    while (waking.places.used < 490 && ended < 2_000) {
      busy.leave();
      ended++;
      busy.places.take();
      world.arrive();
      while (waking.places.take());
      world.arrive();
    }
    expect(waking.places.used).toBeGreaterThanOrEqual(490);
    // Each of those that it lacks is one that the other ended: nearly none is for nothing.
    expect(ended).toBeLessThan(600);
  });

  test('come back to the others when what was busy has been idle for a second', () => {
    const world = new World(2, 1_000);
    world.arrive();
    const [busy, idle] = [world.at(0), world.at(1)];
    fillUp(world, busy);
    while (busy.places.used > 0) busy.leave();
    world.pass(1_500);
    expect([busy.places.credit, idle.places.credit]).toEqual([500, 500]);
  });

  test('need no messages while nothing changes', () => {
    const world = new World(3, 900);
    for (const { places } of world.workers) places.take(100);
    world.pass(2_000);
    const told = world.workers.map((worker) => worker.told);
    for (let i = 0; i < 20; i++) {
      for (const { places } of world.workers) places.give(50);
      for (const { places } of world.workers) places.take(50);
      world.pass(500);
    }
    expect(world.workers.map((worker) => worker.told)).toEqual(told);
  });

  test('are told of few times while one worker goes from nothing to all', () => {
    const world = new World(2, 10_000);
    world.arrive();
    fillUp(world, world.at(0));
    expect(world.at(0).told).toBeLessThan(120);
  });
});

describe('a worker that dies', () => {
  test('leaves all that it had to the others, whatever of its messages comes late', () => {
    const world = new World(2, 100);
    world.arrive();
    const [dead, other] = [world.at(0), world.at(1)];
    fillUp(world, dead);
    dead.leave();
    dead.member.leave();
    world.workers.shift();
    world.arrive();
    for (const message of dead.up) dead.member.receive(message);
    expect(fillUp(world, other)).toBe(100);
  });

  test('has its share again when it comes anew', () => {
    const world = new World(2, 100);
    world.arrive();
    world.at(0).member.leave();
    world.workers.shift();
    fillUp(world, world.at(0));
    while (world.at(0).places.used > 30) world.at(0).leave();
    world.pass(1_500);
    world.workers.push(world.worker());
    world.arrive();
    expect(world.at(1).places.credit).toBe(50);
  });
});

describe('a limit that a new config makes', () => {
  test('smaller, is kept as soon as so much has ended', () => {
    const world = new World(2, 100);
    world.arrive();
    fillUp(world, world.at(0));
    for (const { places } of world.workers) places.max = 40;
    world.arrive();
    expect(world.workers.map(({ places }) => places.take())).toEqual([false, false]);
    for (let i = 0; i < 80; i++) {
      world.at(0).leave();
      world.arrive();
    }
    expect(world.credit).toBeLessThanOrEqual(40);
    while (world.workers.some((_, i) => world.at(i).places.take())) world.arrive();
    expect(world.used).toBeLessThanOrEqual(40);
  });

  test('larger, is there once all workers have that config', () => {
    const world = new World(2, 10);
    world.arrive();
    world.at(0).places.max = 1_000;
    world.arrive();
    expect(world.credit).toBe(10);
    world.at(1).places.max = 1_000;
    world.arrive();
    expect(fillUp(world, world.at(1))).toBeGreaterThan(940);
  });
});

describe('places that are fewer than workers', () => {
  test('go round among those that wait', () => {
    const world = new World(3, 1, true);
    world.arrive();
    for (const { places } of world.workers) places.waiting = places.take() ? 999 : 1_000;
    const served = [0, 0, 0];
    for (let i = 0; i < 300; i++) {
      world.pass(50);
      const busy = world.workers.filter(({ places }) => places.used > 0);
      expect(busy).toHaveLength(1);
      const at = world.workers.findIndex(({ places }) => places.used > 0);
      served[at] = (served[at] ?? 0) + 1;
      busy[0]?.leave();
      world.arrive();
    }
    expect(Math.min(...served)).toBeGreaterThan(60);
  });

  test('come to whoever waits while another does not use them', () => {
    const world = new World(2, 1, true);
    world.arrive();
    for (const i of [0, 1, 0, 1]) {
      const worker = world.at(i);
      worker.places.waiting = worker.places.take() ? 0 : 1;
      world.pass(1_000);
      expect([worker.places.used, worker.places.waiting]).toEqual([1, 0]);
      worker.leave();
    }
  });
});

describe('an allowance for which calls can wait', () => {
  test('is let go when nobody wants it for a minute, and is there again when somebody does', () => {
    const world = new World(2, 10, true);
    world.arrive();
    world.pass(61_000);
    expect(world.credit).toBe(0);
    const { places } = world.at(1);
    expect(places.take()).toBe(false);
    places.waiting = 1;
    world.arrive();
    expect([places.used, places.waiting, places.credit]).toEqual([1, 0, 5]);
  });
});

describe('an allowance that is closed', () => {
  test('gives back what it has, the rest as that ends, and takes nothing more', () => {
    const world = new World(2, 10);
    world.arrive();
    const [closed, other] = [world.at(0), world.at(1)];
    closed.places.take(2);
    closed.places.close();
    world.arrive();
    expect([closed.places.take(), closed.places.credit]).toEqual([false, 2]);
    closed.places.give(2);
    world.arrive();
    expect(fillUp(world, other)).toBe(10);
  });
});
