"""The machinery behind ``rollout.config``: reading, checking, writing and explaining."""
