await obtain(TARGET, COUNT);
