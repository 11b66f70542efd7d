#pragma once
// STIPPLE_CPU_CLONES before a hot function of plain loops: it is compiled for AVX2 (and popcnt) too, and the program
// takes that version where the processor has it. Without contraction both give the same bits: what a lane computes does
// not depend on how many there are.

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define STIPPLE_CPU_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define STIPPLE_CPU_CLONES
#endif
