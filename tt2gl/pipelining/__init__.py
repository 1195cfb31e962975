"""Software pipelining of loops: what loads need, and the prologue, steady state and drain made of it."""
