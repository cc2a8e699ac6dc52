"""The engine: the world as a record, its generation, its rules tick by tick."""
