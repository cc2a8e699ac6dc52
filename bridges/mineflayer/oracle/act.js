// Plays the part of one actor in ACTS, [who, what, whom or what] each, in their order: each waits
// for the act before its own. HELD says what the actors have.
const me = bot.username;
const heard = [];
bot.on('chat', (who, text) => { heard.push(`${who}: ${text}`); });
const player = (name) => bot.nearestEntity({ username: name });
const PATIENCE = 400; // ticks; no act of another can be seen for certain

/** Waits until a test gives something, or for some ticks. */
async function until(test, ticks) {
  for (let t = 0; t < ticks && !test(); t += 5) await bot.waitForTicks(5);
}

/** Runs to and fro until there is room for food: who is full cannot eat. */
async function getHungry() {
  const from = bot.entity.position;
  for (let k = 0; bot.food >= 20; k++) {
    const to = from.offset(k % 2 ? 0 : 12, 0, 0);
    await approach(() => to, 1, 80, () => {
      bot.setControlState('jump', true);
      return bot.food < 20;
    });
    await bot.waitForTicks(1);
  }
  await approach(() => from, 1, 200);
}

async function eat(name) {
  for (let tries = 0, had = have(name); tries < 8 && have(name) === had; tries++) {
    if (bot.food >= 20) await getHungry();
    await tried(async () => { await bot.equip(name, 'hand'); await bot.consume(); });
    await bot.waitForTicks(2);
  }
}

const MEAT = { beef: 'cow', porkchop: 'pig', mutton: 'sheep', chicken: 'chicken', rabbit: 'rabbit' };
const furnace = () => bot.findBlock({ matching: 'furnace', maxDistance: 16 });

/** Gets meat from an animal, and cooked meat from a furnace. */
async function prepare(name) {
  if (MEAT[name]) return killMob(MEAT[name], 60);
  for (const [x, z] of turns) if (!furnace()) await tried(() => placeItem('furnace', feet().offset(2 * x, 0, 2 * z)));
  return smeltItem(name.replace('cooked_', ''), 'coal', 1);
}

/** Takes what another gives, or gets it otherwise. */
async function get(name) {
  if (!giver(me, name)) {
    for (let tries = 0; tries < 20 && have(name) === 0; tries++) if (!await tried(() => prepare(name))) await bot.waitForTicks(20);
    return;
  }
  await until(() => have(name) > 0 || bot.nearestEntity({ name: 'item' }), PATIENCE);
  for (let tries = 0; tries < 20 && have(name) === 0; tries++) {
    await gather(bot.entity.position, 8);
    await bot.waitForTicks(10);
  }
}

/** Who gives an item to an actor: the other one that has it. */
const giver = (to, name) => Object.keys(HELD).find((who) => who !== to && HELD[who].includes(name));

async function give(name, to) {
  const near = () => player(to)?.position ?? bot.entity.position;
  await approach(near, 2, 400);
  await bot.lookAt(near().offset(0, 1, 0));
  await tried(() => bot.toss(name, null, 1));
  await bot.waitForTicks(40);
}

await bot.waitForTicks(20); // until all listen
if (ACTS.some(([who, what]) => who === me && what === 'eat')) await getHungry();
for (const [who, what, object] of ACTS) {
  log(`${who} ${what} ${object}`);
  if (who !== me) {
    if (what === 'get' && giver(who, object) === me) await give(object, who);
    else if (what === 'chat') await until(() => heard.includes(`${who}: ${object}`), 4000);
    else await bot.waitForTicks(what === 'get' ? 120 : 60);
  } else if (what === 'chat') bot.chat(object);
  else if (what === 'eat') await eat(object);
  else if (what === 'get') await get(object);
  else await killMob(object, 60);
  await bot.waitForTicks(10);
}
await bot.waitForTicks(24000);
