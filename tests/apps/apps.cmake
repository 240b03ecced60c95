# The CUDA programs of this folder: one row each. Without further words a program is NAME.cu, built for compute_75 (PTX only)
# with the static runtime.
#   ARCH n         another compute capability          CUDART shared  with the shared runtime
#   GENCODE …      replaces the -gencode option        FLAGS …        further nvcc options
#   LIBS …         libraries                           SOURCES …      further files
#   AS name        the name of this variant            TIMEOUT s      time limit of the test (default 120)
#   MISSING text   what Gridloom does not have yet: the test is skipped, aloud

# Programs that memcheck rightly complains of: they pass bad pointers on purpose, or (cuBLAS's reduce_1Block_kernel, cuFFT's
# vector_fft where a block has fewer rows than it could) read shared memory that no thread has written, and do not use it, or race.
set(gridloom_not_for_memcheck illegal_address stray_accesses memory_faults launch_errors copies host_memory cublas_vectors cufft_transforms
    shared_reuse)

# Programs whose kernels end before their time.
set(gridloom_not_for_trace device_assert illegal_address memory_faults launch_errors)

# Programs that use memory outside of their allocations, of which ranges know nothing.
set(gridloom_not_for_ranges stray_accesses)

# Programs of which one size of slices is enough: hundreds of kernels, and all of them compiled twice.
set(gridloom_slow_in_slices cublas_vectors cufft_transforms thrust_algorithms cub_primitives)

# Arithmetic.
gridloom_app(integer_arithmetic)
gridloom_app(bit_operations)
gridloom_app(simd_video)
gridloom_app(carry_chains)
gridloom_app(float_rounding)
gridloom_app(float_functions)
gridloom_app(half_arithmetic)
gridloom_app(bfloat16_arithmetic ARCH 80)
gridloom_app(conversions)

# Memory, calls, control flow.
gridloom_app(vectoradd)
gridloom_app(broker_load)
gridloom_app(shared_memory)
gridloom_app(shared_reuse)
gridloom_app(constant_memory)
gridloom_app(local_memory)
gridloom_app(kernel_parameters)
gridloom_app(large_parameters)
gridloom_app(memory_operations)
gridloom_app(function_pointers)
gridloom_app(recursion)
gridloom_app(exit_in_functions)
gridloom_app(virtual_calls)
gridloom_app(printf_formats)
gridloom_app(device_assert)
gridloom_app(device_heap)
gridloom_app(control_flow)
gridloom_app(launch_shapes)
gridloom_app(separate_compilation FLAGS -rdc=true SOURCES separate_compilation_other.cu)

# Atomics, cooperation between threads.
gridloom_app(atomics_integer)
gridloom_app(atomics_float ARCH 80)
gridloom_app(cuda_atomic)
gridloom_app(spin_locks)
gridloom_app(spin_then_shuffle)
gridloom_app(lookback_scan)
gridloom_app(grid_sync)
gridloom_app(warp_shuffles)
gridloom_app(warp_sync)
gridloom_app(warp_votes)
gridloom_app(warp_reduce ARCH 80)
gridloom_app(block_barriers)
gridloom_app(cooperative_groups)
gridloom_app(async_copy ARCH 80)
gridloom_app(cuda_barrier ARCH 80)
gridloom_app(dynamic_parallelism FLAGS -rdc=true LIBS cudadevrt)
gridloom_app(dynamic_parallelism_streams FLAGS -rdc=true LIBS cudadevrt)
gridloom_app(dynamic_parallelism_synchronize FLAGS -rdc=true -DCUDA_FORCE_CDP1_IF_SUPPORTED -D__CDPRT_SUPPRESS_SYNC_DEPRECATION_WARNING LIBS cudadevrt)
gridloom_app(clusters ARCH 90)
gridloom_app(launch_attributes ARCH 90)
gridloom_app(clocks_and_registers)

# Matrices, textures.
gridloom_app(wmma_half)
gridloom_app(wmma_wide ARCH 80)
gridloom_app(mma_ptx ARCH 80)
gridloom_app(texture_2d)
gridloom_app(texture_linear)
gridloom_app(texture_3d)
gridloom_app(texture_references FLAGS -Wno-deprecated-declarations LIBS cuda)
gridloom_app(surfaces)
gridloom_app(mipmaps)

# The runtime and driver interfaces.
gridloom_app(streams_and_events)
gridloom_app(host_callbacks)
gridloom_app(graphs_capture)
gridloom_app(graphs_conditional)
gridloom_app(graphs_explicit)
gridloom_app(memory_pools)
gridloom_app(managed_memory)
gridloom_app(host_memory)
gridloom_app(copies)
gridloom_app(device_symbols)
gridloom_app(occupancy_and_attributes)
gridloom_app(driver_modules LIBS cuda)
gridloom_app(driver_linker LIBS cuda)
gridloom_app(driver_libraries LIBS cuda)
gridloom_app(virtual_memory LIBS cuda)
gridloom_app(stream_memory_operations LIBS cuda)
gridloom_app(nvrtc_program LIBS cuda nvrtc)
if(EXISTS ${GRIDLOOM_TOOLKIT_LIBRARIES}/libnvJitLink.so)
  gridloom_app(runtime_compilers LIBS cuda)
  gridloom_app(jit_link_linked LIBS cuda nvrtc nvJitLink)
endif()
if(EXISTS ${GRIDLOOM_TOOLKIT_LIBRARIES}/libcublas.so)
  gridloom_app(cublas_vectors LIBS cublas)
endif()
if(EXISTS ${GRIDLOOM_TOOLKIT_LIBRARIES}/libcufft.so)
  gridloom_app(cufft_transforms LIBS cufft)
endif()
gridloom_app(host_threads)
gridloom_app(per_thread_stream FLAGS --default-stream per-thread)
gridloom_app(fork_and_exec)
gridloom_app(dlopen_driver)
gridloom_app(launch_errors)
gridloom_app(illegal_address)
gridloom_app(stray_accesses)
gridloom_app(memory_faults ARCH 80 TIMEOUT 300)
gridloom_app(no_kernel_image GENCODE arch=compute_75,code=sm_75)

gridloom_app(memcheck_defects FLAGS -lineinfo)

# Libraries of kernels.
gridloom_app(thrust_algorithms TIMEOUT 600)
gridloom_app(cub_primitives TIMEOUT 600)

# The same programs built in other ways.
gridloom_app(reference_kernels)
gridloom_app(vectoradd AS vectoradd_shared_runtime CUDART shared)
gridloom_app(vectoradd AS vectoradd_debug FLAGS -G -g)
gridloom_app(vectoradd AS vectoradd_lineinfo FLAGS -lineinfo)
gridloom_app(vectoradd AS vectoradd_uncompressed FLAGS -compress-mode=none)
gridloom_app(vectoradd AS vectoradd_lz4 FLAGS -compress-mode=speed)
gridloom_app(vectoradd AS vectoradd_zstd FLAGS -compress-mode=size)
gridloom_app(vectoradd AS vectoradd_machine_code_too GENCODE arch=compute_75,code=[compute_75,sm_75])
gridloom_app(vectoradd AS vectoradd_blackwell ARCH 120)
gridloom_app(control_flow AS control_flow_debug FLAGS -G)
gridloom_app(control_flow AS control_flow_unoptimised FLAGS -Xcicc -O0)
gridloom_app(shared_memory AS shared_memory_debug FLAGS -G)
gridloom_app(virtual_calls AS virtual_calls_debug FLAGS -G)
gridloom_app(device_symbols AS device_symbols_shared_runtime CUDART shared)
gridloom_app(graphs_capture AS graphs_capture_shared_runtime CUDART shared)
gridloom_app(host_threads AS host_threads_shared_runtime CUDART shared)
gridloom_app(float_functions AS float_functions_fast FLAGS -ftz=true -prec-div=true -prec-sqrt=true)
gridloom_app(control_flow AS control_flow_hopper ARCH 90)
gridloom_app(warp_shuffles AS warp_shuffles_hopper ARCH 90)
gridloom_app(atomics_integer AS atomics_integer_hopper ARCH 90)
