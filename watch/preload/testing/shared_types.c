// MPICH's way with what a type was made of, before Open MPI: the program gets the same handle, with
// one reference more. Of the last type that was made in a row.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

static MPI_Datatype part;
static int references = 0;

int PMPI_Type_contiguous(int count, MPI_Datatype old, MPI_Datatype* made) {
  int (*real)(int, MPI_Datatype, MPI_Datatype*) = dlsym(RTLD_NEXT, "PMPI_Type_contiguous");
  part = old;
  return real(count, old, made);
}

int PMPI_Type_get_contents(MPI_Datatype type, int most_ints, int most_places, int most, int ints[],
                           MPI_Aint places[], MPI_Datatype given[]) {
  (void)type, (void)most_ints, (void)most_places, (void)most, (void)ints, (void)places;
  given[0] = part;
  ++references;
  return MPI_SUCCESS;
}

int PMPI_Type_free(MPI_Datatype* type) {
  int (*real)(MPI_Datatype*) = dlsym(RTLD_NEXT, "PMPI_Type_free");
  if (*type != part || references == 0) return real(type);
  --references;
  *type = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}
