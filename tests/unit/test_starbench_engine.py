"""The rules of StarBench's battles: figures worked out by hand, and what always holds."""

import json
import random
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.starbench.rules import combat, content, scoring
from bridges.starbench.rules.battle import Battle
from bridges.starbench.rules.content import FOLDER, compile_op, load
from bridges.starbench.rules.field import BATTLES, SPACE
from bridges.starbench.rules.foes import curve_at
from bridges.starbench.rules.units import ELEMENTS
from bridges.starbench.rules.view import ALL, BASIC, FIRST_ENEMY, HOLD, RELEASE, SKILL, action_id
from rollout.errors import ConfigError, StateError, UnknownNameError

SEELE, SPARKLE, WOLF, XUAN = range(4)
QUANTUM = ELEMENTS.index("quantum")


def plain(unit):
    """The unit without critical hits, whose stats are worked out."""
    unit.refresh()
    unit.cr = 0.0
    return unit


def test_damage_is_that_of_the_formula():
    battle = Battle("cocolia", 0, raw=True)
    seele, boss = plain(battle.allies[SEELE]), battle.enemies[0]
    # ATK 3000 + 0.45 x 640 (Sparkle's A6), DMG +49 %, DEF 1000 / 2000, weak: RES 0, unbroken 0.9.
    assert seele.atk == pytest.approx(3288)
    assert combat.hit(battle, seele, boss, seele.atk) == pytest.approx(3288 * 1.49 * 0.5 * 0.9)
    # DEF -45 %: 550 / 1550 of the damage is kept off; RES -20 % of an implant on a resistance of 0.
    for name in ("def_down", "implant"):
        combat.give(battle, seele, boss, load().statuses[name])
    expected = 3288 * 1.49 * (1 - 550 / 1550) * 1.2 * 0.9
    assert combat.hit(battle, seele, boss, seele.atk) == pytest.approx(expected)
    boss.broken = True
    assert combat.hit(battle, seele, boss, seele.atk) == pytest.approx(expected / 0.9)
    seele.cr = 1.0  # CRIT DMG 160 %
    assert combat.hit(battle, seele, boss, seele.atk) == pytest.approx(expected / 0.9 * 2.6)


def test_damage_to_allies_is_shared_and_lessened():
    battle = Battle("cocolia", 0, raw=True)
    boss, seele, xuan = battle.enemies[0], battle.allies[SEELE], battle.allies[XUAN]
    # ATK 552; DEF 950 against level 80; Fu Xuan's talent -18 %; no resistance.
    whole = 1.8 * 552 * (1 - 950 / 1950) * 0.82
    assert combat.hit(battle, boss, seele, 1.8 * boss.atk) == pytest.approx(whole)
    combat.give(battle, xuan, xuan, load().statuses["matrix"])
    before, guard = seele.hp, xuan.hp
    assert seele.max_hp == pytest.approx(3000 + 0.06 * 7200)
    combat.hit(battle, boss, seele, 1.8 * boss.atk)
    assert before - seele.hp == pytest.approx(0.35 * whole)
    assert guard - xuan.hp == pytest.approx(0.65 * whole)


def test_a_break_costs_what_the_formula_says():
    battle = Battle("cocolia", 3, raw=True)
    seele, boss = plain(battle.allies[SEELE]), battle.enemies[0]
    boss.refresh()
    # 0.5 x LM(80) x (0.5 + 180 / 40) x DEF 0.5 x unbroken 0.9
    expected = 0.5 * 3767.5533 * 5.0 * 0.5 * 0.9
    assert combat.break_damage(battle, seele, boss, QUANTUM) == pytest.approx(expected)
    boss.toughness = 10.0
    av, hp = boss.av, boss.hp
    combat.reduce_toughness(battle, seele, boss, 10.0, QUANTUM)
    assert boss.broken
    assert boss.toughness == 0.0
    assert hp - boss.hp == pytest.approx(expected)
    # Entanglement at 150 % x (1 - 0.1) is certain: 25 % and 20 % of 10000 / (120 x 1.2).
    assert boss.av - av == pytest.approx(0.45 * 10000 / 144)
    assert boss.find(load().statuses["entanglement"].number) is not None


def test_toughness_falls_for_weaknesses_only():
    battle = Battle("swarm_king", 0)
    seele, boss = battle.allies[SEELE], battle.enemies[0]
    combat.reduce_toughness(battle, seele, boss, 30.0, QUANTUM)
    assert boss.toughness == 200.0
    combat.give(battle, seele, boss, load().statuses["implant"])
    boss.refresh()
    combat.reduce_toughness(battle, seele, boss, 30.0, QUANTUM)
    assert boss.toughness == 170.0
    assert boss.res[QUANTUM] == pytest.approx(-0.2)  # weak instead of 0.4


def test_the_turn_order_is_that_of_the_action_values():
    battle = Battle("cocolia", 0)
    # 10000 / SPD: Sparkle 160, Silver Wolf 150, Cocolia 120 x 1.2, Seele 142, Fu Xuan 134.
    names = [turn.name for turn in battle.view().order]
    assert names == ["Sparkle", "Silver Wolf", "Cocolia", "Seele", "Fu Xuan"]
    assert battle.clock == pytest.approx(62.5)
    # Sparkle's skill advances Seele by half of her gauge: 70.42 - 62.5 - 35.2 is below 0.
    assert battle.act(action_id(SPARKLE, SKILL, SEELE))
    assert battle.actor == SEELE
    assert battle.clock == pytest.approx(62.5)
    assert battle.points == 2
    # Her basic attack shortens the next gauge by 20 %.
    assert battle.act(action_id(SEELE, BASIC, FIRST_ENEMY))
    left = 0.8 * 10000 / 142 - (battle.clock - 62.5)
    assert battle.allies[SEELE].av == pytest.approx(left)


def test_energy_and_skill_points():
    battle = Battle("cocolia", 0)
    assert battle.max_points() == 7
    assert battle.points == 3
    battle.act(action_id(SPARKLE, BASIC, FIRST_ENEMY))
    assert battle.points == 4
    sparkle = battle.allies[SPARKLE]
    assert sparkle.energy == pytest.approx(55 + 30 * 1.194)
    sparkle.energy = 110.0
    battle._run()
    assert battle.act(action_id(SPARKLE, RELEASE, ALL))
    assert sparkle.energy == pytest.approx(5 * 1.194)
    assert battle.points == 7


def test_a_kill_in_her_own_turn_gives_seele_another():
    battle = Battle("xianzhou", 0, {"energy": 0})
    while battle.actor != SEELE:
        battle.act(battle.legal()[0])
    hound = next(u for u in battle.enemies if u.kind.key == "golden_hound")
    hound.hp = 1.0
    target = FIRST_ENEMY + battle.enemies.index(hound)
    clock = battle.clock
    battle.act(action_id(SEELE, BASIC, target))
    assert battle.actor == SEELE
    assert battle.extra
    assert battle.clock == clock
    assert battle.allies[SEELE].find(load().statuses["resurgence"].number)
    assert not any(move // 10 % 4 == RELEASE for move in battle.legal())


def test_an_ultimate_may_be_held_before_an_enemy_acts():
    battle = Battle("cocolia", 0, {"energy": 100})
    while battle.window != "off_turn":
        battle.act(battle.legal()[0])
    offered, clock = battle.offered, battle.clock
    for slot in offered:
        assert battle.act(action_id(slot, HOLD, ALL))
    assert battle.clock > clock
    assert all(battle.allies[slot].energy > 0 for slot in offered)


def test_fu_xuan_heals_herself_once():
    battle = Battle("cocolia", 0)
    xuan = battle.allies[XUAN]
    combat.hurt(battle, xuan, 0.6 * xuan.max_hp, None)
    assert xuan.hp == pytest.approx((0.4 + 0.9 * 0.6) * xuan.max_hp)
    combat.hurt(battle, xuan, 0.6 * xuan.max_hp, None)
    assert xuan.hp < 0.5 * xuan.max_hp


def test_aggro_follows_the_weights():
    battle = Battle("cocolia", 0)
    drawn = [battle.aim().slot for _ in range(4000)]
    for slot, weight in ((SEELE, 75), (SPARKLE, 100), (WOLF, 100), (XUAN, 150)):
        assert drawn.count(slot) / 4000 == pytest.approx(weight / 425, abs=0.03)


@pytest.mark.parametrize(
    ("action_value", "cycles"), [(0, 0), (149, 0), (150, 1), (249, 1), (250, 2), (350, 3)]
)
def test_cycles(action_value, cycles):
    assert scoring.cycles_used(action_value) == cycles
    assert scoring.chaos_score(action_value, 20) == 20 - cycles


def test_scores_of_apocalyptic_shadow():
    assert scoring.shadow_score(1.0, 760) == 3240  # the mean of people in Table 5
    assert scoring.shadow_score(0.238, 2000) == 476
    assert scoring.shadow_score(1.0, 3000) == 2000


def test_ten_invalid_decisions_lose():
    battle = Battle("stardevourer", 0)
    for _ in range(9):
        assert not battle.act(159)
    assert battle.invalid == 9
    assert battle.outcome is None
    assert battle.charged == pytest.approx(9 * 10000 / 160)
    battle.act(battle.legal()[0])
    assert battle.invalid == 0
    battle.act_select()
    assert battle.decisions == 11
    for _ in range(10):
        battle.act_invalid("nothing there")
    assert battle.outcome == "lost"
    assert battle.decisions == 21


def test_levels_between_two_rows_are_interpolated():
    assert curve_at(load().rules["levels"], 65)["hp"] == pytest.approx((7909 + 14248) / 2)


def test_lances_lock_the_toughness_of_the_second_phase():
    battle = Battle("cocolia", 0)
    boss = battle.enemies[0]
    battle.perform(boss, "lances")
    assert [u.kind.key for u in battle.enemies if u.kind.kind == "summon"]
    assert not battle.locked(boss)
    combat.hurt(battle, boss, boss.hp, battle.allies[SEELE])
    assert boss.bar == 1
    assert battle.locked(boss)
    assert battle.outcome is None


class Watched(Battle):
    """Checks that time passes equally for everybody."""

    def _pass_time(self, unit):
        self.before = {id(each): each.av for each in self.units()}, self.clock
        super()._pass_time(unit)

    def _begin(self, unit, *, extra=False):
        if not extra:
            avs, clock = self.before
            passed = self.clock - clock
            assert passed >= 0.0
            for each in self.units():
                assert each.av == pytest.approx(avs[id(each)] - passed, abs=1e-6)
            assert unit.av == pytest.approx(0.0, abs=1e-6)
        super()._begin(unit, extra=extra)


def check(battle):
    for unit in battle.units():
        assert 0.0 < unit.hp <= unit.max_hp * (1 + 1e-9)
        assert unit.av >= -1e-6
        assert 0.0 <= unit.energy <= (unit.kind.max_energy or 0.0)
        assert 0.0 <= unit.toughness <= unit.max_toughness if not unit.ally else True
    assert 0 <= battle.points <= battle.max_points()
    assert len(battle.enemies) <= 5
    assert 0.0 <= scoring.depleted(battle) <= 1.0
    assert (battle.outcome is None) == bool(battle.legal()) == (battle.window != "over")


states = st.builds(
    lambda index: {k: v for k, v in SPACE.state(index).values.items() if k != "battle"},
    st.integers(0, SPACE.size - 1),
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(BATTLES), st.integers(0, 2**40), states, st.integers(0, 10**6))
def test_what_holds_in_every_battle(task, seed, state, choices):
    chance = random.Random(choices)
    battle = Watched(task, seed, state)
    for _ in range(40):
        check(battle)
        if battle.outcome is not None:
            break
        battle.act(chance.choice(battle.legal()))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(BATTLES), st.integers(0, 2**40), st.integers(0, 30))
def test_a_battle_repeats_and_a_snapshot_restores_it(task, seed, steps):
    def play(battle, chance, many):
        for _ in range(many):
            if battle.outcome is None:
                battle.act(chance.choice(battle.legal()))
        return battle.view()

    one, other = Battle(task, seed), Battle(task, seed)
    assert play(one, random.Random(1), steps) == play(other, random.Random(1), steps)
    saved = one.snapshot()
    later = play(one, random.Random(2), 20)
    restored = Battle.from_snapshot(saved)
    assert restored.view() == other.view()
    assert play(restored, random.Random(2), 20) == later
    one.load(json.loads(saved)[1])
    assert one.snapshot() == saved
    assert play(one, random.Random(2), 20) == later


def test_another_seed_is_another_battle():
    ends = {Battle("cocolia", seed).rand() for seed in range(50)}
    assert len(ends) == 50
    orders = {Battle("cocolia", 0, {"script": n}).enemies[0].orders for n in range(50)}
    assert len(orders) > 5


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("team", "{advance: {on: self", "{advence: {on: self", "advance"),
        ("team", "name: sheathed_blade", "name: sheathed_blad", "sheathed_blade"),
        ("enemies", "[strike, storm, strike, lances]", "[strike, strom]", "storm"),
        ("enemies", "units: [sting]", "unit: [sting]", "units"),
        ("battles", "waves: [[cocolia]]", "waves: [[cocola]]", "cocolia"),
        ("statuses", "mods: {spd: 0.25}", "mods: {speed: 0.25}", "spd"),
    ],
)
def test_a_wrong_name_in_a_file_is_told_with_the_nearest(tmp_path, name, old, new, told):
    folder = tmp_path / "content"
    shutil.copytree(FOLDER, folder)
    file = folder / f"{name}.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(UnknownNameError, match=told):
        content.load(folder)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("damage", {}, "mult"),
        ("damage", {"mult": "much"}, "much"),
        ("after", {"unit": "a"}, "turns"),
        ("summon", {"units": "sting"}, "expected a list"),
    ],
)
def test_an_effect_that_is_incomplete_or_wrong_is_told(name, data, told):
    with pytest.raises(ConfigError, match=f"a.yaml: {name}.*incomplete or wrong.*{told}"):
        compile_op(name, data, None, load().statuses, "a.yaml")


def test_wrong_battles_and_states_are_told():
    with pytest.raises(UnknownNameError, match="cocolia"):
        Battle("cocola", 0)
    with pytest.raises(UnknownNameError, match="energy"):
        Battle("cocolia", 0, {"enery": 50})
    with pytest.raises(StateError, match="energy"):
        Battle("cocolia", 0, {"energy": 51})
