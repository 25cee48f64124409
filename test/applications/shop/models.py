"""What the migrations lead to."""
