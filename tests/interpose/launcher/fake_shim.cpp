// What programs see when this is preloaded: that it is there.
extern "C" __attribute__((visibility("default"))) int gridloom_fake_shim() { return 1; }
