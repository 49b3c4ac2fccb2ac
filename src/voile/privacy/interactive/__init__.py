"""What noisy answers tell: confidence, the noise that (δ,T)-privacy needs, and its accounts."""
