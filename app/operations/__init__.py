"""What whoever runs a server needs: its log, its figures, whether it is ready, and what protects it from too much."""
