'use strict';
/**
 * Sky, haze and light by time of day and weather; the curves of our ray-caster,
 * bridges/mineflayer/rgb.py.
 */
const DAY = 24_000;
const HAZE = { night: [10, 13, 26], day: [188, 212, 250], dusk: [232, 150, 98] };
const TOP = { night: [3, 4, 12], day: [112, 162, 250], dusk: [88, 92, 160] };
const SHADE = { night: [0.19, 0.22, 0.36], day: [1, 1, 1] };
const DEEP = [18, 46, 128];
const STORM_DIMS = 0.35;
/** Share of the horizon's colour in the uniform sky colour; terrain fades into it. */
const HORIZON = 0.45;

const mix = (one, other, share) => one.map((value, n) => value + (other[n] - value) * share);
const clamp = (value) => Math.min(Math.max(value, 0), 1);

/**
 * Returns {sky, shade}, each [red, green, blue] from 0 to 1: the colour of sky and haze, and what
 * light is multiplied by.
 *
 * @param {{time: number, rain: number, thunder: number}} scene time 0 to 23999, the others 0 to 1
 * @param {boolean} wet whether the eye is under water
 */
function hourOf({ time, rain, thunder }, wet) {
  const sun = Math.cos((time - DAY / 4) * 2 * Math.PI / DAY);
  const day = clamp(sun * 1.9 + 0.55);
  const dusk = clamp(1 - Math.abs(sun + 0.04) * 3.2);
  const storm = clamp(rain * 0.75 + thunder * 0.2);
  const grey = 24 + 120 * day;
  const haze = mix(mix(mix(HAZE.night, HAZE.day, day), HAZE.dusk, dusk * 0.55), [grey, grey * 1.03, grey * 1.1], storm);
  const grim = [grey * 0.8, grey * 0.83, grey * 0.9];
  const top = mix(mix(mix(TOP.night, TOP.day, day), TOP.dusk, dusk * 0.5), grim, storm);
  const sky = wet ? DEEP.map((value) => value * (0.25 + 0.75 * day)) : mix(top, haze, HORIZON);
  const shade = mix(SHADE.night, SHADE.day, day).map((value) => value * (1 - STORM_DIMS * storm));
  return { sky: sky.map((value) => value / 255), shade };
}

module.exports = { hourOf };
