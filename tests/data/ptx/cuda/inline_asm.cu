// What people write in asm(): blocks, local registers, labels, predicates, several statements on a line.
__global__ void Inline(unsigned* out, unsigned a, unsigned b, unsigned long long l, float f, double d,
                       unsigned short h) {
  unsigned r;
  asm("{ .reg .pred p; .reg .u32 t1, t2; setp.lt.u32 p, %1, %2; @p add.u32 t1, %1, 1; @!p mov.u32 t1, %2; mov.u32 t2, "
      "t1; mov.u32 %0, t2; }"
      : "=r"(r)
      : "r"(a), "r"(b));
  out[0] = r;
  asm volatile(
      "{\n\t.reg .pred done;\n\tLOOP_%=:\n\tsetp.gt.u32 done, %0, 100;\n\t@done bra EXIT_%=;\n\tadd.u32 %0, %0, "
      "7;\n\tbra LOOP_%=;\n\tEXIT_%=:\n\t}"
      : "+r"(r));
  out[1] = r;
  asm("add.cc.u32 %0, %2, %3; addc.u32 %1, 0, 0;" : "=r"(out[2]), "=r"(out[3]) : "r"(a), "r"(b));
  asm("mad.lo.cc.u32 %0, %1, %2, %3;\n\tmadc.hi.u32 %0, %1, %2, 0;" : "=r"(out[4]) : "r"(a), "r"(b), "r"(r));
  asm("bfe.u32 %0, %1, 4, 8; bfi.b32 %0, %0, %1, 3, 5; lop3.b32 %0, %0, %1, %2, 0x96; prmt.b32.b4e %0, %0, %1, 2;"
      : "=&r"(out[5])
      : "r"(a), "r"(b));
  asm("mov.b64 {%0, _}, %1;" : "=r"(out[6]) : "l"(l));
  asm("mov.u32 %0, %%laneid; // a comment\n\tmov.u32 %1, %%smid; /* another */" : "=r"(out[7]), "=r"(out[8]));
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(out[9]) : "r"(a), "r"(b), "r"(r));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  asm("ex2.approx.ftz.f32 %0, %1; rsqrt.approx.f32 %0, %0;" : "=f"(f) : "f"(f));
  asm volatile("prefetch.global.L2 [%0]; prefetchu.L1 [%0];" ::"l"(l));
#if __CUDA_ARCH__ >= 800
  asm volatile("discard.global.L2 [%0], 128; applypriority.global.L2::evict_normal [%0], 128;" ::"l"(l));
#endif
  asm volatile(
      "bar.sync 1, 64; barrier.sync.aligned 2; bar.arrive 3, 128; membar.gl; fence.acq_rel.gpu; fence.sc.sys;");
  asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2+8];" : "=r"(out[10]), "=r"(out[11]) : "l"(l) : "memory");
  asm volatile("red.global.add.u32 [%0], 1; st.release.gpu.u32 [%0], %1;" ::"l"(l), "r"(a));
  asm volatile("pmevent 3; nanosleep.u32 20; brkpt;");
  out[12] = h + static_cast<unsigned>(f + d);
}
