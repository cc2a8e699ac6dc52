"""Agents of MineLand's interface, whose programs a model writes; here the model is a script.

    python examples/mineland_agents.py                       # two agents make a pickaxe together

The loop is that of MineLand's own scripts: observe, let each agent decide, step. Put a call of your
model in the place of ``Scripted.write``; it gets what MineLand's agents get.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridges.mineflayer import mineland

TASK = "techtree_1_wooden_pickaxe_with_16_oak_planks_and_1_crafting_table_and_8_stick"


class Scripted:
    """An agent with a list of programs: when one has ended, it begins the next.

    Args:
        programs: JavaScript, see docs/mineflayer-api.md.
    """

    def __init__(self, programs: Sequence[str]) -> None:
        self._programs = list(programs)

    def run(
        self,
        obs: mineland.Observation,
        code_info: mineland.CodeInfo,
        task_info: mineland.TaskInfo,
    ) -> mineland.Action:
        """Returns the agent's next action."""
        if code_info.code_error:
            print(f"{obs.name}: {code_info.code_error['error_message']}")
        if code_info.is_running:
            return mineland.Action(type=mineland.Action.RESUME, code="")
        return mineland.Action(type=mineland.Action.NEW, code=self.write(obs, task_info))

    def write(self, obs: mineland.Observation, task_info: mineland.TaskInfo) -> str:
        """Returns a program; a model would be asked with the goal and the observation."""
        del obs, task_info
        return self._programs.pop(0) if self._programs else ""


def main() -> None:
    """Plays an episode."""
    crafter = [
        "await placeItem(bot, 'crafting_table', bot.entity.position.offset(1, 0, 1));",
        "await craftItem(bot, 'wooden_pickaxe', 1); bot.chat('It is done.');",
    ]
    agents = [Scripted(crafter), Scripted(["bot.chat('I shall watch.');"])]
    mland = mineland.make(task_id=TASK, agents_count=len(agents), headless=True, ticks_per_step=20)
    mland.reset()
    act = mineland.Action.no_op(len(agents))
    for _ in range(100):
        obs, code_info, event, done, task_info = mland.step(action=act)
        act = []
        for number, agent in enumerate(agents):
            seen, code = obs[number], code_info[number]
            assert seen is not None
            assert code is not None
            assert task_info is not None
            act.append(agent.run(seen, code, task_info))
            for each in event[number]:
                if each["type"] == "chat":
                    print(f"{seen.name} hears: {each['message']}")
        if done:
            break
    print(f"{TASK}: {'success' if task_info and task_info.is_success else 'no success'}")
    mland.close()


if __name__ == "__main__":
    main()
