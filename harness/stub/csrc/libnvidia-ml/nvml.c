/* The stub's libnvidia-ml.so.1. PyTorch counts devices with NVML before it asks CUDA, so on a machine that has GPUs the
 * real library would answer for them; and PyTorch calls some of its functions without looking whether they are there. */
#include "stub.h"

enum { NVML_SUCCESS = 0, NVML_NOT_SUPPORTED = 3 };

int nvmlInit(void) { return NVML_SUCCESS; }

int nvmlInit_v2(void) { return NVML_SUCCESS; }

int nvmlShutdown(void) { return NVML_SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = (unsigned int)stub_device_count();
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    static char only;
    (void)bus;
    *device = &only;
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    (void)index;
    return nvmlDeviceGetHandleByPciBusId_v2("", device);
}

/* PyTorch adds the processes on the device to its out-of-memory message, and asserts that it may: there are none. */
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned int *count, void *processes) {
    (void)device, (void)processes;
    *count = 0;
    return NVML_SUCCESS;
}

/* The second version of nvmlGpuFabricInfoV_t; all zero but its version, it says that there is no fabric. */
typedef struct {
    unsigned int version;
    unsigned char cluster[16];
    unsigned int status, clique;
    unsigned char state;
    unsigned int health;
} fabric_info;

int nvmlDeviceGetGpuFabricInfoV(void *device, fabric_info *info) {
    (void)device;
    *info = (fabric_info){.version = info->version};
    return NVML_SUCCESS;
}

/* Questions about links and sensors: there is nothing to tell. */
int nvmlDeviceGetNvLinkRemoteDeviceType(void) { return NVML_NOT_SUPPORTED; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void) { return NVML_NOT_SUPPORTED; }
int nvmlSystemGetCudaDriverVersion_v2(void) { return NVML_NOT_SUPPORTED; }
int nvmlDeviceGetUtilizationRates(void) { return NVML_NOT_SUPPORTED; }
int nvmlDeviceGetTemperature(void) { return NVML_NOT_SUPPORTED; }
int nvmlDeviceGetPowerUsage(void) { return NVML_NOT_SUPPORTED; }

const char *nvmlErrorString(int error) {
    return error == NVML_SUCCESS ? "success" : "the harness stub does not do this NVML call";
}
