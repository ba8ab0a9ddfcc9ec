// Knows no MPI; linked statically.
#include <stdio.h>

int main(void) {
  puts("it ran");
  return 7;
}
