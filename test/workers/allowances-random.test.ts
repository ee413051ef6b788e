import { describe, expect, test } from 'vitest';
import { fillUp, generator, type Worker, World } from './allowance-world.ts';

type Random = (below: number) => number;

interface Setting {
  readonly count: number;
  readonly max: number;
  readonly canWait: boolean;
}

function takeSome(worker: Worker, random: Random, { max, canWait }: Setting): void {
  const amount = canWait ? 1 : 1 + random(Math.ceil(max / 20));
  for (let i = random(10); i >= 0; i--) {
    const isIn = worker.places.take(amount);
    if (!isIn && canWait && worker.places.waiting < 50) worker.places.waiting++;
  }
}

function endSome(worker: Worker, random: Random, canWait: boolean): void {
  const { places } = worker;
  for (let i = random(10); i >= 0 && places.used > 0; i--)
    if (canWait) worker.leave();
    else places.give(1 + random(places.used));
}

/** One thing that may happen at any moment, of those that a process does, a message, a moment that passes, and a death. */
function happen(world: World, random: Random, setting: Setting): void {
  const i = random(setting.count);
  const worker = world.at(i);
  const choice = random(100);
  if (choice < 20) takeSome(worker, random, setting);
  else if (choice < 40) endSome(worker, random, setting.canWait);
  else if (choice < 45) worker.allowances.look();
  else if (choice < 90) worker.step(random(3));
  else if (choice < 98) world.passAtOnce(random(60));
  else if (choice === 98) world.replace(i);
}

/** Ends one call of each worker after the other until nobody waits; answers how many rounds that took. */
function serveAll(world: World): number {
  let rounds = 0;
  for (; world.workers.some(({ places }) => places.waiting > 0) && rounds < 500; rounds++) {
    for (const worker of world.workers.filter(({ places }) => places.used > 0)) worker.leave();
    world.pass(50);
  }
  return rounds;
}

/** Ends one after the other until no more than so many are in use. */
function endUntil(world: World, usedMax: number): void {
  while (world.used > usedMax) {
    for (const { places } of world.workers.filter(({ places: { used } }) => used > 0)) places.give();
    world.arrive();
  }
}

describe('whatever happens in whatever order', () => {
  test.each<Setting>([
    { count: 2, max: 1_000, canWait: false },
    { count: 3, max: 7, canWait: true },
    { count: 4, max: 2, canWait: true },
    { count: 5, max: 3, canWait: false },
    { count: 8, max: 100, canWait: true },
    { count: 2, max: 256 * 1024 ** 2, canWait: false },
  ])('$count workers never use more than $max together (they can wait: $canWait)', (setting) => {
    const { count, max, canWait } = setting;
    for (let seed = 1; seed <= 60; seed++) {
      const random = generator(seed * 1_000 + count);
      const world = new World(count, max, canWait);
      let creditMax = 0;
      for (let step = 0; step < 600; step++) {
        happen(world, random, setting);
        creditMax = Math.max(creditMax, world.credit);
        if (world.workers.some(({ places }) => places.used > places.credit)) expect.fail(`seed ${seed}`);
      }
      expect(creditMax, `seed ${seed}`).toBeLessThanOrEqual(max);
      world.pass(1_000);
      expect(serveAll(world), `seed ${seed}: somebody waits in vain`).toBeLessThan(500);
      for (const { places } of world.workers) places.give(places.used);
      world.pass(2_000);
      // Nothing was lost on the way.
      expect(fillUp(world, world.at(0), Math.ceil(max / 1_000)), `seed ${seed}`).toBeGreaterThan(
        max * 0.93 - 1,
      );
    }
  });

  test('a limit that grows and shrinks holds once what was in use beyond it has ended', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = generator(seed);
      const setting = { count: 3, max: 200, canWait: false };
      const world = new World(setting.count, setting.max);
      for (let change = 0; change < 8; change++) {
        for (let step = 0; step < 100; step++) happen(world, random, setting);
        setting.max = 10 + random(300);
        world.resize(setting.max);
      }
      world.pass(2_000);
      endUntil(world, setting.max);
      for (const worker of world.workers) fillUp(world, worker);
      expect(world.used, `seed ${seed}`).toBeLessThanOrEqual(setting.max);
      expect(world.used, `seed ${seed}`).toBeGreaterThan(setting.max * 0.93 - 1);
    }
  });
});
