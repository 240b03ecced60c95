// Texture and surface objects of every shape.
__global__ void Textures(float4* out, cudaTextureObject_t t, cudaSurfaceObject_t s, float x, float y, float z) {
  out[0] = tex1D<float4>(t, x);
  out[1] = tex2D<float4>(t, x, y);
  out[2] = tex3D<float4>(t, x, y, z);
  out[3] = tex1Dfetch<float4>(t, 3);
  out[4] = tex2DLod<float4>(t, x, y, z);
  out[5] = tex2DGrad<float4>(t, x, y, make_float2(x, y), make_float2(y, x));
  out[6] = tex2DLayered<float4>(t, x, y, 2);
  out[7] = texCubemap<float4>(t, x, y, z);
  out[8] = texCubemapLayered<float4>(t, x, y, z, 1);
  out[9] = tex2Dgather<float4>(t, x, y, 1);
  out[10].x =
      tex1DLayered<int>(t, x, 1) + tex2D<unsigned>(t, x, y) + tex3DLod<float>(t, x, y, z, 1.f) + tex1D<short>(t, x);
  surf1Dwrite(1.f, s, 4);
  surf2Dwrite(make_float2(x, y), s, 8, 2, cudaBoundaryModeClamp);
  surf3Dwrite(make_int4(1, 2, 3, 4), s, 16, 1, 2, cudaBoundaryModeZero);
  out[11].x =
      surf2Dread<float>(s, 4, 5) + surf1Dread<short>(s, 2) + surf2DLayeredread<int>(s, 4, 5, 1, cudaBoundaryModeZero);
  surf2DLayeredwrite(3, s, 4, 5, 1);
  surfCubemapwrite(x, s, 4, 5, 2);
}
