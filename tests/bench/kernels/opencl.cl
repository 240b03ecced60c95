// The benchmark kernels as OpenCL C: the same algorithms as in CUDA, work group for block.
#pragma OPENCL FP_CONTRACT OFF

