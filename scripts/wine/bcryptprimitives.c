/* Rust's standard library takes its random bytes from ProcessPrng, which Wine 8 lacks: RtlGenRandom has them. */
#include <stddef.h>

__declspec(dllimport) unsigned char SystemFunction036(void *data, unsigned long size);
__declspec(dllexport) int ProcessPrng(unsigned char *data, size_t size) { return SystemFunction036(data, size); }
