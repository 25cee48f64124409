"""The models are those of the migrations, at each of them."""
