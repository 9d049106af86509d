/* The CUDA wheels leave out crt/host_defines.h, which belongs to the compiler nvcc. Their runtime headers want only
 * these macros from it, and for a C compiler each of them is empty or a plain alignment. */
#ifndef HARNESS_STUB_HOST_DEFINES_H
#define HARNESS_STUB_HOST_DEFINES_H

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDA_CB
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __no_return__ __attribute__((noreturn))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __device_builtin__
#define __cudart_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cluster_dims__(...)
#define __launch_bounds__(...)
#define __location__(a) __attribute__((a))

#endif
