// Stands for NVIDIA's libcufft where it is not installed: it knows its version and refuses the rest, since Gridloom is
// to answer it.
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int cufftGetVersion(int* version) { return *version = 12000, 0; }

#define REFUSED(name) \
  EXPORT int name() { return 5; }
REFUSED(cufftCreate)
REFUSED(cufftDestroy)
REFUSED(cufftPlan1d)
REFUSED(cufftPlan2d)
REFUSED(cufftPlan3d)
REFUSED(cufftPlanMany)
REFUSED(cufftMakePlan1d)
REFUSED(cufftMakePlanMany64)
REFUSED(cufftXtMakePlanMany)
REFUSED(cufftEstimate1d)
REFUSED(cufftGetSize)
REFUSED(cufftSetWorkArea)
REFUSED(cufftSetAutoAllocation)
REFUSED(cufftSetStream)
REFUSED(cufftExecC2C)
REFUSED(cufftExecR2C)
REFUSED(cufftExecC2R)
REFUSED(cufftXtExec)
REFUSED(cufftXtSetCallback)
REFUSED(cufftXtSetGPUs)
