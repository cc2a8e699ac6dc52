"""Evaluations over several tasks: players with actions of their own, machine goals and a judge."""
