/* What the files that stand in for cuDNN share. */
#ifndef HARNESS_STUB_DNN_H
#define HARNESS_STUB_DNN_H

#include <cudnn.h>

#include "stub.h"

/* dnn.c: a function of NVIDIA's own cuDNN, which the stub leaves in charge of every descriptor. */
STUB_INTERNAL void *stub_real_cudnn(const char *name);

#endif
