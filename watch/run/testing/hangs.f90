! A Fortran program that knows nothing of Lockstep: a ring; with an argument each rank then waits
! for a message that nobody sends.
program hangs
  use mpi
  implicit none
  integer :: error, rank, size, got, total
  integer :: status(MPI_STATUS_SIZE), requests(2)

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  call MPI_Irecv(got, 1, MPI_INTEGER, mod(rank + size - 1, size), 3, MPI_COMM_WORLD, requests(1), &
                 error)
  call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, size), 3, MPI_COMM_WORLD, requests(2), error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  call MPI_Allreduce(got, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a, i0)', 'total ', total
  if (command_argument_count() > 0) then
    call MPI_Recv(got, 1, MPI_INTEGER, mod(rank + 1, size), 7, MPI_COMM_WORLD, status, error)
  end if
  call MPI_Finalize(error)
end program hangs
