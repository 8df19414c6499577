"""Methods that the papers compare with: scikit-learn's, loaded by the jobs that fit them and by no other."""
