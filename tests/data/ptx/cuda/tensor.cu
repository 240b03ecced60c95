// Tensor cores through wmma for every element type, and mma by inline assembly.
#include <mma.h>
using namespace nvcuda;

__global__ void Half(const half* a, const half* b, float* c, half* d) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fragment<wmma::accumulator, 32, 8, 16, half> fd;
  wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> fe;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> ff;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::fill_fragment(fc, 0.f);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
  wmma::load_matrix_sync(fe, a, 32);
  wmma::load_matrix_sync(ff, b, 8);
  wmma::load_matrix_sync(fd, d, 32, wmma::mem_col_major);
  wmma::mma_sync(fd, fe, ff, fd);
  wmma::store_matrix_sync(d, fd, 32, wmma::mem_col_major);
}

__global__ void Small(const signed char* a, const unsigned char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, reinterpret_cast<const signed char*>(b), 16);
  wmma::fill_fragment(fc, 0);
  wmma::mma_sync(fc, fa, fb, fc, true);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 8, 8, 128, wmma::experimental::precision::b1, wmma::row_major> ba;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, wmma::experimental::precision::b1, wmma::col_major> bb;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> bc;
  wmma::fill_fragment(bc, 0);
  wmma::load_matrix_sync(ba, a, 128);
  wmma::load_matrix_sync(bb, b, 128);
  wmma::bmma_sync(bc, ba, bb, bc, wmma::experimental::bmmaBitOpXOR);
  wmma::store_matrix_sync(c, bc, 8, wmma::mem_row_major);
}

#if __CUDA_ARCH__ >= 800
__global__ void Wide(const float* a, const double* b, float* c, double* d, const __nv_bfloat16* e) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
  wmma::load_matrix_sync(fa, a, 8);
  wmma::load_matrix_sync(fb, a, 8);
  wmma::fill_fragment(fc, 0.f);
  for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> da;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> db;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> dc;
  wmma::load_matrix_sync(da, b, 4);
  wmma::load_matrix_sync(db, b, 4);
  wmma::fill_fragment(dc, 0.0);
  wmma::mma_sync(dc, da, db, dc);
  wmma::store_matrix_sync(d, dc, 8, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> ea;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> eb;
  wmma::load_matrix_sync(ea, e, 16);
  wmma::load_matrix_sync(eb, e, 16);
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> ec;
  wmma::fill_fragment(ec, 0.f);
  wmma::mma_sync(ec, ea, eb, ec);
  wmma::store_matrix_sync(c, ec, 16, wmma::mem_row_major);
}
#endif

__global__ void Inline(unsigned* r, float* f, void* p) {
  unsigned s = static_cast<unsigned>(__cvta_generic_to_shared(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(s));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\n"
               : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
               : "r"(r[0]), "r"(r[1]), "r"(r[2]));
}
