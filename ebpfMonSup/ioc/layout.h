/* SPDX-License-Identifier: BSD-3-Clause */
/* For the time of the change only: include ioc/baseLayout.h. */
#include "ioc/baseLayout.h"
